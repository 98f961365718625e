package conntest

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/stream"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// OnGoroutine opens connections on a goroutine for each.
func OnGoroutine(pair func(testing.TB) (nc, peer net.Conn)) Opener {
	return func(t testing.TB, o Options, s Session) Peer {
		t.Helper()
		nc, peer := pair(t)
		if o.Small {
			tcp, ours := socket(nc)
			if other, theirs := socket(peer); ours && theirs {
				tcp.SetWriteBuffer(servertest.Small(other))
			}
		}
		var lefts atomic.Int32
		t.Cleanup(func() {
			servertest.Eventually(t, "the connection has left", func() bool { return lefts.Load() == 1 })
		})
		c := stream.New(nc, &o.Limits, new(tally.Shard), func(*stream.Conn) { lefts.Add(1) })
		if o.Layer != nil {
			c.SetLayer(o.Layer)
		}
		if o.Deadline != 0 {
			c.SetDeadline(sys.Nanotime() + o.Deadline)
		}
		s.On(c)
		go func() {
			defer c.Gone() // also after runtime.Goexit
			c.Run(s)
		}()
		commands := map[conn.Command]func(){conn.Kill: c.Kill, conn.Drain: c.Drain, conn.CloseIdle: c.CloseIdle}
		return Peer{Conn: peer, Command: func(m conn.Command, first func()) {
			if first != nil {
				first()
			}
			commands[m]()
		}}
	}
}

// socket returns what is below nc, if that is TCP.
func socket(nc net.Conn) (tcp *net.TCPConn, ok bool) {
	if t, over := nc.(interface{ NetConn() net.Conn }); over {
		nc = t.NetConn()
	}
	tcp, ok = nc.(*net.TCPConn)
	return tcp, ok
}

// TLSClient makes tc, over nc, a peer whose CloseWrite ends its side with close_notify and FIN.
func TLSClient(tc *tls.Conn, nc net.Conn) net.Conn { return &tlsClient{tc, nc} }

type tlsClient struct {
	*tls.Conn
	nc net.Conn
}

func (c *tlsClient) CloseWrite() error {
	err := c.Conn.CloseWrite()
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	return err
}

// Close does not wait for a peer that reads nothing, as tls.Conn's does.
func (c *tlsClient) Close() error {
	c.nc.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	return c.Conn.Close()
}
