// Package websocket opens WebSocket connections (RFC 6455, with the compression of
// RFC 7692) that cost no goroutine and no buffer while they are idle.
//
//	echo, err := websocket.New(&websocket.Options{
//		OnMessage: func(c *websocket.Conn, t websocket.Type, p []byte) {
//			c.Send(t, p)
//		},
//	})
//	if err != nil {
//		return err
//	}
//	http.Handle("/echo", echo)
//
// A [Handler] is an http.Handler. On chert's event loops an open connection is a
// small struct. A message's code runs as handlers do: on the loop once it has proved
// to be quick, on a pooled goroutine otherwise; for one connection in order, for
// different ones concurrently. Code that waits, for a database for instance, is
// detected: it delays its own connection and no others.
//
// [Conn.Send] may be called by any goroutine at any time and never waits: if too much
// waits for a slow client, it returns [ErrSlow] and the connection ends, see [Slow].
// [Conn.Write] waits instead. A [Room] sends one message to many connections; package
// redisroom has rooms that several processes share.
//
// Code that would rather read messages in a loop, on a goroutine of its own, sets
// [Options].Serve and calls [Conn.Read].
//
// # Security
//
// Browsers send cookies with the opening handshake, whatever page asks for it. So
// only pages of the same host may connect, and those in Options.Origins. Messages,
// their fragments, what waits to be sent and what compressed data becomes are
// bounded; see [Options].
//
// # Other servers
//
// On net/http's server the same code runs with a goroutine for each connection. That
// server's Shutdown neither closes nor awaits hijacked connections: call [Handler.Close]
// by http.Server.RegisterOnShutdown there. chert's Shutdown sends clients CodeGoingAway
// by itself, and waits for their answer for up to five seconds, but connections of
// Options.Serve are hijacked on chert's server too.
package websocket

// It must not know chert's server, since it runs on net/http's too: on chert it gets its
// connections through internal/takeover, and on others internal/stream drives them. Frames
// are internal/wsframe's, compression internal/wsdeflate's.
//
//	session.go   receives, on a takeover.Link
//	inflate.go   inflates what it receives
//	send.go      sends
//	netlink.go   a takeover.Link over a hijacked net.Conn
//	read.go      Options.Serve
