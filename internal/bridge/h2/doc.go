// Package h2 is HTTP/2 on connections of event loops and of goroutines: a session
// that makes requests of streams and frames of answers.
package h2

// It knows frames by package http2 and handlers by package bridge; it must not know
// sockets, listeners or TLS. The root may import it.
//
// # Who does what
//
// The owner of the Link calls the Session. Data parses all frames that have come,
// and begins the requests among them: a quick handler runs there and then
// (Link.Start with a Here), any other on a goroutine. If a
// handler that was thought to be quick is not, the loop goes on without it: Data
// returns conn.Lost, and is called anew for the frames that are left.
//
// A Session is a reader (reader.go) and a sender (sender.go). The reader is the owner's: it makes
// frames and header blocks of what comes. The sender is shared with handlers, and guarded by
// Session.mu: the streams, the windows, what has been received of bodies, and out, the frames
// that are ready. A method whose name ends in Locked is called with mu held, and holds it until
// it returns; frames are passed to the Link without it. What passes some, or waits, and has mu released
// meanwhile says so (Session.pass, stream.wait). All that is ready at the end
// of Data leaves in one write, and so do the answers of handlers that end at the same time.
//
// A stream has one state (state.go), and each way to end has one name (end.go). It is a
// bridge.Stream to its own exchange (link.go).
//
// # What is bounded
//
// out and the Link's queue by flow control: DATA and header blocks are made only while
// they have room, small answers excepted, and nothing is read while they have not
// (conn.Pause). Bodies by the windows that
// are granted, and by the connection's once more for what is gathered, or left of streams that
// the client has reset. Streams by MaxStreams, of which a handler keeps its place until it
// returns, whatever becomes of its stream. What costs work and brings nothing, by
// budgets (section/budget.go).
