// Package park lets hijacked connections wait without a goroutine, in any protocol and
// with any library:
//
//	func readable(conn net.Conn) {
//		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
//		m, err := readMessage(conn)
//		if err != nil {
//			conn.Close()
//			return
//		}
//		conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
//		answer(conn, m)
//		conn.SetReadDeadline(time.Now().Add(5 * time.Minute))
//		if err := park.Park(conn, readable); err != nil {
//			conn.Close()
//		}
//	}
//
// Connections may come from any server, also net/http's. Those of package net over TCP
// and unix sockets, and TLS over them by crypto/tls, are watched without a goroutine on
// Linux, and with one elsewhere. For connections of other types the function is called at
// once, and its Read waits.
//
// Bytes that were read from a connection before it is parked, into the bufio.Reader of
// Hijack for instance, do not count as something to read: use them first, or pass a
// net.Conn whose Read returns them and that has two more methods:
//
//	Buffered() int     // how many bytes Read can return from its buffer
//	NetConn() net.Conn // from which it reads when there are none
//
// Parked connections are the program's: Shutdown and Run of a server neither close nor
// await them, see RegisterOnShutdown, and limits of connections do not count them.
package park

// The engine is internal/park, which knows sockets alone; here is what is known of types
// of connections. The server imports internal/park too: its loops leave the processor to
// the goroutines of parked connections that have events. docs/adr/0041-parked-connections.md
// has the reasons.
