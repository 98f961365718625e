package stream

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// What the client has sent while its last request was answered, and nobody has read, does not cut
// the response by a reset.
func TestCloseWithUnread(t *testing.T) {
	t.Parallel()
	if !sys.HavePoller {
		t.Skip("sockets cannot be asked for what they have")
	}
	answer := strings.Repeat("a", 1<<20) + "\n"
	cert, roots := servertest.Certificate(t)
	for _, secure := range []bool{false, true} {
		socket, peer := servertest.TCPConns(t)
		nc := net.Conn(socket)
		if secure {
			nc = tls.Server(socket, &tls.Config{Certificates: []tls.Certificate{cert}})
		}
		begun, ended := make(chan bool), make(chan bool)
		f := &fake{t: t, serve: func(f *fake, line string) conn.Next {
			close(begun)
			raw, err := socket.SyscallConn()
			if err == nil {
				err = raw.Read(func(fd uintptr) bool { return sys.Pending(int(fd)) })
			}
			if err == nil {
				err = f.Write([]byte(answer), nil)
			}
			if err != nil {
				t.Error(err)
			}
			return conn.Close
		}}
		f.Conn = New(nc, &conn.Limits{WriteStall: int64(time.Hour)}, new(tally.Shard), nil)
		go func() {
			defer close(ended)
			f.Run(f)
		}()
		var c *servertest.Client
		if c = servertest.NewClient(t, peer); secure {
			c, _ = servertest.TLSOver(t, peer, roots)
		}
		c.Send("a\n")
		servertest.Await(t, begun, "the request")
		c.Send("b\n")
		c.Want(answer)
		if more := c.Rest(); more != "" {
			t.Errorf("TLS %v: got %q after the answer", secure, more)
		}
		c.Close()
		servertest.Await(t, ended, "the end of Run")
	}
}
