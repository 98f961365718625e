// Package admin shows what a server does while it runs: a live page, health checks,
// profiles, and lists of the requests and connections of now. [New] returns one handler
// for a listener of its own:
//
//	srv := &chert.Server{Handler: mux}
//	var draining atomic.Bool
//	srv.RegisterOnShutdown(func() { draining.Store(true) })
//	page := admin.New(srv, &admin.Options{Ready: func() bool { return !draining.Load() }})
//	go http.ListenAndServe("127.0.0.1:9080", page)
//
// The paths are
//
//	/                    the live page
//	/stats               the counters as JSON; "chert top" reads them
//	/setup               Options.Setup as JSON: sites, certificates, the last reload
//	/upstreams           Options.Upstreams and Options.Stores as JSON
//	/events              what has happened in each second, as an event stream
//	/metrics             Options.Metrics
//	/healthz             200
//	/readyz              200, or 503 while Options.Ready returns false
//	/debug/requests      the requests in progress, as HTML or JSON
//	/debug/connections   the open connections, as HTML or JSON
//	/debug/pprof/        profiles, for "go tool pprof"
//
// They show paths and addresses of users, but no queries, which may contain secrets, and
// profiles take time: use a listener that only operators can reach, such as one on
// 127.0.0.1. There is no authentication. The handler defends itself against web pages in
// an operator's browser: it answers only GET and HEAD, refuses requests that other origins
// cause, and on loopback addresses also requests for foreign host names (DNS rebinding).
package admin

// It imports nothing of the server, only what describes one (stats, proxy, internal/interval): the listener may be that
// of any server.
