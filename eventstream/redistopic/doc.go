// Package redistopic shares the topics of package eventstream between processes through Redis: a
// single server, a primary found by Sentinel, or a Cluster. A client gets each event of a topic
// whichever process published it, and continues on another process where it was cut off.
//
//	store, err := redistopic.OpenURL("redis://127.0.0.1:6379/0", nil)
//	...
//	news, err := store.Topic("news")
//	...
//	news.Join(stream)                               // in OnOpen
//	id, err := news.Publish(eventstream.Event{Data: "hello"})
//
// A topic is a stream of Redis, whose IDs are those of the events. A process reads each event
// once, however many clients it has, and keeps the newest ones in memory as any topic does; all
// topics are read by one blocking command. A topic that no client of a process has joined is
// not read. It needs Redis 5 or later, and 7 to know a topic's very first event as such.
//
// # What is guaranteed
//
// Every client that has joined gets the events of a topic once and in the order of Redis, also
// when its connection, that to Redis, or the process ends and the client connects again to any
// process. If something is missing it gets [eventstream.TopicOptions].Gap before what follows:
// because it comes back later than the history reaches, because Redis has lost data, or because it
// dropped events before the process could read them, which Redis says from version 7 on. It loses
// its data when it is restarted without persistence, and what it had not replicated when
// a replica takes over; a client may then have got events that are not in Redis any more.
//
// # While Redis is away
//
// Clients stay, and get what was published when it is back. Publish returns an error; after one
// of the network it is not known whether the event was stored. With Options.Queue events wait
// instead, in order, and none is stored twice, unless a command that has timed out reaches Redis
// after the one that repeats it.
package redistopic

// It imports redisstream for the streams of Redis, and eventstream for topics, which know
// nothing of Redis. Any package may import it.
