// Package eventstream sends Server-Sent Events (WHATWG HTML, section 9.2) from responses
// that outlive their handlers: an open stream costs no goroutine and no buffer.
//
//	news, err := eventstream.NewTopic(nil)
//	if err != nil {
//		return err
//	}
//	feed, err := eventstream.New(&eventstream.Options{
//		OnOpen: func(s *eventstream.Stream, r *http.Request) { news.Join(s) },
//	})
//	if err != nil {
//		return err
//	}
//	http.Handle("/feed", feed)
//	...
//	news.Publish(eventstream.Event{Data: "hello"})
//
// A [Handler] is an http.Handler that opens a [Stream] for each request. A [Topic] sends
// events to all streams that have joined it, from one encoding in memory, and keeps the
// last ones: a client that connects again says by Last-Event-ID what it has seen, and
// gets what it has missed, once and in order.
//
// [Stream.Send] and [Topic.Publish] may be called from any goroutine and never wait for
// clients. A client that reads too slowly is behind in the topic's history, which costs it a
// bounded buffer and others nothing; when the history has gone on without it, its stream
// ends or continues with the oldest event that there is, see [Slow].
//
// A [Poll] is a request that waits for one answer in the same way.
//
// Packages redistopic and natstopic have topics that several processes share. [NewMirror] and
// [Source] are for packages like these, which keep events in another store; programs need
// neither.
//
// # Browsers
//
// An EventSource connects again by itself when a stream ends or fails, after the time
// of the most recent "retry" field. A response with another status than 200 or with
// another type stops it from reconnecting. So a Handler that is full or has been closed
// responds with 200, an empty stream and a time to retry, which differs from client to
// client so that they do not reconnect all at once.
//
// Over HTTP/1 a browser opens six connections to one host, of which each stream takes
// one; over HTTP/2 it takes none.
//
// # Compression
//
// With Options.Compression a stream is compressed for a client that accepts gzip. No
// compressor is kept: an event of a [Topic] is compressed once for all clients, with
// references to the last 4 KiB of the topic's events for those that have received just
// these. What [Stream.Send] sends is compressed for its client, with references to what
// was sent in this way before; up to 4 KiB of it are kept until the next heartbeat. Events
// that would not become shorter are sent as they are, with 10 bytes more.
//
// Compression can leak secrets (CRIME, BREACH): if a stream or a topic has secrets and
// text that an attacker chooses, an observer of the encrypted connection can guess a
// secret from the sizes of events. Do not compress such streams.
//
// # Other servers
//
// On net/http's server the same code runs, with a goroutine for each stream: the
// handler's. Call [Handler.Close] by http.Server.RegisterOnShutdown there, or its
// Shutdown waits for the streams. chert's Shutdown ends them by itself. Behind
// middleware that changes what handlers write, such as a compressor, a stream also takes
// the handler's goroutine.
package eventstream

// It must not import the engines, since it runs on net/http's server: on chert it gets
// its responses through internal/takeover.
//
//	event.go    events as bytes
//	handler.go  opens streams
//	stream.go   one stream
//	topic.go    many streams, and history
//	pump.go     what a topic sends
//	mirror.go   topics whose events a store has
//	gzip.go     compressed streams
//	sweep.go    heartbeats and ages
//	writer.go   a takeover.Stream over an http.ResponseWriter, by a goroutine
//	poll.go     requests that wait
