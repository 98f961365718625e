package stream

import (
	"net"
	"testing"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/conn/conntest"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string]func(testing.TB) (net.Conn, net.Conn){
		"tcp": func(t testing.TB) (net.Conn, net.Conn) { return servertest.TCPConns(t) },
		// It has no buffers and no half-close, and its reads and writes meet.
		"pipe": func(testing.TB) (net.Conn, net.Conn) { return net.Pipe() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conntest.Test(t, func(t testing.TB, o conntest.Options, s conntest.Session) conntest.Peer {
				nc, peer := pair(t)
				if tcp, ok := nc.(*net.TCPConn); ok && o.Small {
					tcp.SetWriteBuffer(servertest.Small(peer))
				}
				c := New(nc, &o.Limits, new(tally.Shard), nil)
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
				return conntest.Peer{Conn: peer, Command: c.obey}
			})
		})
	}
}

// obey does what Commands do on loops.
func (c *Conn) obey(m conn.Command) {
	switch m {
	case conn.Kill:
		c.Kill()
	case conn.Drain:
		c.Drain()
	case conn.CloseIdle:
		c.CloseIdle()
	}
}
