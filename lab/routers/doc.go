// Package routers benchmarks how long routers take to find a handler, on the 203
// routes of GitHub's API (2013) that every router can register:
//
//	go test -bench . -count 5 ./routers
//
// chert's router is measured as a direct.Handler, where the handler reads path
// values by name, and as a plain http.Handler (chert-plain), where
// http.Request.SetPathValue allocates a map for each request with wildcards. The
// handlers of the other routers read the values by name as well.
package routers
