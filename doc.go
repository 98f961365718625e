// Package chert provides an HTTP server that runs any http.Handler on event
// loops: change http.Server to chert.Server and keep every handler.
//
//	srv := &chert.Server{Addr: ":8080", Handler: mux}
//	if err := chert.Run(context.Background(), srv, 20*time.Second); err != nil {
//		log.Fatal(err)
//	}
//
// [Run] serves until SIGINT or SIGTERM, and then lets running requests finish.
// Server also has the methods of http.Server, such as ListenAndServe and
// Shutdown.
//
// Connections of package net's TCP and unix listeners run on event loops, one
// for each of GOMAXPROCS, and hold no goroutine and no buffer while idle. Other
// listeners, servers with a ConnContext, and systems without a poller use the
// same code with a goroutine per connection. HTTP/2 is supported over TLS, and in
// plain text if Server.Protocols permits it.
//
// Timeouts and limits are on by default; see [Server]. The meaning of a field
// differs from net/http here: in http.Server zero means none; in chert zero
// means a safe default and a negative value means none.
package chert

// This package is the only place where the parts under internal/ are wired
// together; docs/ARCHITECTURE.md describes them.
