package stream

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/tally"
)

// alertingConn cannot be written to any more, and says goodbye all the same, as crypto/tls
// does.
type alertingConn struct{ net.Conn }

func (alertingConn) Write([]byte) (int, error) { return 0, errors.New("cut") }

func (a alertingConn) NetConn() net.Conn { return a.Conn }

func (a alertingConn) Close() error {
	a.Conn.Write([]byte("alert"))
	return a.Conn.Close()
}

// What TLS sends after a write that has failed, perhaps within a record, is a
// bad MAC to the peer.
func TestNoAlertAfterFailure(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(c *Conn){
		"a write of a shared link": func(c *Conn) { c.Out().Offer([]byte("a"), nil, outbox.QueueLimit) },
		"Reset":                    func(c *Conn) { c.End(conn.Reset) },
	} {
		base, peer := net.Pipe()
		shard := new(tally.Shard)
		shard.Init(nil)
		c := New(alertingConn{base}, new(conn.Limits), shard, nil)
		c.Share()
		c.session = mute{}
		go end(c)
		if got, err := io.ReadAll(peer); len(got) > 0 || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

type mute struct{ conn.Session }

func (mute) Closed(bool) {}

// panickingConn fails to write, and panics when it is asked what is below it.
type panickingConn struct{ alertingConn }

func (panickingConn) NetConn() net.Conn { panic("NetConn") }

// A connection that is aborted on a goroutine of this package does not end the process.
func TestPanicInAbort(t *testing.T) {
	t.Parallel()
	base, peer := net.Pipe()
	defer peer.Close()
	panics := make(chan any, 1)
	c := New(Guard(panickingConn{alertingConn{base}}, func(v any) { panics <- v }), new(conn.Limits), nil, nil)
	c.Share()
	c.session = mute{}
	c.Out().Offer([]byte("a"), nil, outbox.QueueLimit)
	if v := <-panics; v != "NetConn" {
		t.Errorf("panic %v", v)
	}
}
