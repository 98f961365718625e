// Package redisroom shares rooms of package websocket between processes through Redis: a single
// server, a primary found by Sentinel, or a Cluster. A message reaches all connections of the
// room, whichever process they are on.
//
//	store, err := redisroom.OpenURL("redis://127.0.0.1:6379/0", nil)
//	...
//	lobby, err := store.Room("lobby")
//	...
//	lobby.Join(conn, &redisroom.JoinOptions{User: "ann"}) // in OnOpen
//	id, err := lobby.Broadcast(websocket.TypeText, []byte("hello"))
//	users, err := lobby.Users(ctx)                  // of all processes
//	n, err := store.Send(ctx, "ann", websocket.TypeText, []byte("to you alone"))
//
// A room is a stream of Redis. A process reads each message once, however many connections it
// has; all rooms are read by one blocking command, and a room in which a process has no
// connection is not read. It needs Redis 5 or later.
//
// # What is guaranteed
//
// A connection in the room gets its messages once and in the order of Redis, also when the
// connection of its process to Redis is cut. With Options.History it gets what it has missed
// when it connects again to any process: messages carry their ID by Options.Encode, and
// JoinOptions.After has the last one. Options.Gap tells of messages that are missing.
//
// While Redis is away connections stay, and get what was sent when it is back. Broadcast then
// returns an error, or with Options.Queue lets messages wait.
//
// Users are those that Join has named. Each process says every ten seconds that it lives; users of
// one that has died are gone after half a minute.
package redisroom

// It imports redisstream for the streams of Redis, and websocket for connections, which know
// nothing of Redis. Any package may import it.
//
//	store.go     rooms by name, messages to a user
//	room.go      a room
//	resume.go    connections that wait for what they have missed
//	presence.go  who is where
