// Package top displays a running server in a terminal, or as lines of text. It reads
// the JSON of package admin.
package top
