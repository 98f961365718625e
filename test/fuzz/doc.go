// Package fuzz has the fuzz targets of the whole server, which play the same
// bytes on net/http and on each engine, and the grammar that makes them.
// Internal packages have targets of their own. It contains tests only.
package fuzz
