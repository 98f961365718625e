// Package report turns what was measured into tables and JSON. It is arithmetic and text only.
package report
