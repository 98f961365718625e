// Package routers measures how long routers take to find a handler, on the 203
// routes of GitHub's API (2013) that every router can register. It has
// benchmarks only:
//
//	go test -bench . -count 5 ./routers
//
// chert's router is measured on its direct way, where the handler asks for the
// values by name, and as a plain http.Handler (chert-plain), where
// http.Request.SetPathValue makes a map for each request with wildcards. The
// handlers of the others read the values by name as well.
package routers
