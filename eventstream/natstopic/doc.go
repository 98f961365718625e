// Package natstopic shares the topics of package eventstream between processes through NATS
// JetStream, as redistopic does through Redis: a client gets each event of a topic whichever
// process published it, and continues on another process where it was cut off.
//
//	store, err := natstopic.Open("nats://127.0.0.1:4222", nil)
//	...
//	news, err := store.Topic("news")
//
// A topic is a subject of one stream of JetStream, which the first process makes: see
// Options.Stream. The ID of an event is its sequence there, after the time at which the stream
// was made. Processes get new events by the stream's republishing (RePublish), a plain
// subscription for each topic that they have clients of, and read only what they have missed
// from the stream. It needs nats-server 2.10 or later, with JetStream.
//
// # What is guaranteed
//
// Every client that has joined gets the events of a topic once and in the order of the stream,
// also when its connection, that to NATS, or the process ends. If something is missing it gets
// [eventstream.TopicOptions].Gap before what follows: because it comes back later than the
// history reaches, or because the stream has been deleted. With Options.Replicas 3 the stream
// survives the loss of a server without losing an event that was acknowledged.
//
// While NATS is away clients stay, and get what was published when it is back. Publish returns
// an error; with Options.Queue events wait instead, in order, and none is stored twice.
package natstopic

// It is a module of its own: programs that do not import it do not get nats.go. It imports
// eventstream for topics, which know nothing of NATS.
//
//	store.go    topics by name; publishes
//	reader.go   reads, on one goroutine
//	history.go  the stream, and what it has of a topic
