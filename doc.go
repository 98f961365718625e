// Package chert is an HTTP server that runs any http.Handler on event loops of
// its own: change http.Server to chert.Server and keep every handler.
//
//	srv := &chert.Server{Addr: ":8080", Handler: mux}
//	if err := chert.Run(context.Background(), srv, 20*time.Second); err != nil {
//		log.Fatal(err)
//	}
//
// [Run] serves until SIGINT or SIGTERM, and lets running requests finish. The
// methods of http.Server, such as ListenAndServe and Shutdown, are there too.
//
// Package net's TCP and unix listeners are driven by event loops, one for each
// of GOMAXPROCS, where an idle connection holds no goroutine and no buffer.
// Other listeners, servers with a ConnContext, and systems without a poller
// are served with a goroutine per connection by the same code. HTTP/2 is spoken
// over TLS, and in plain text where Server.Protocols says so, by the same handlers.
//
// Timeouts and limits are on by default; see [Server]. That is the one place
// where the meaning of a field differs from net/http: there zero is none, here
// zero is a safe default and a negative value is none.
//
// This package is the only place where the parts under internal/ are wired
// together; docs/ARCHITECTURE.md describes them.
package chert
