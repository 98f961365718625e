// Package pattern parses the patterns of routes, "[METHOD ][HOST]/PATH" in the syntax of
// http.ServeMux, and tells which of two wins. Its errors are for the author of a pattern.
package pattern

// Package router matches requests by them; the command checks those of a configuration,
// for which router would panic. It must know neither handlers nor requests.
