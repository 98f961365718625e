package h2

import (
	"bytes"
	"net"
	"testing"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http2"
)

// lastLink keeps what Send is given.
type lastLink struct {
	conn.Link
	sent []byte
}

func (l *lastLink) Send(w *conn.Write) error {
	l.sent = append(l.sent, w.A...)
	return nil
}

// A connection is closed while a goroutine of a handler has collected a HEADERS frame, but not
// passed it, or after the Link has refused it: what other handlers have left since is not sent
// without it. GOAWAY is.
func TestLastFramesOvertakeNone(t *testing.T) {
	t.Parallel()
	data := append(http2.AppendHeader(nil, http2.FrameData, http2.FlagEndStream, 41, 5), "hello"...)
	goAway := append(http2.AppendHeader(nil, http2.FrameGoAway, 0, 0, 8), 0, 0, 0, 41, 0, 0, 0, 11)
	all := append(append([]byte{}, data...), goAway...)
	for _, c := range []struct {
		sending, refused bool
		want             []byte
	}{{false, false, all}, {true, false, goAway}, {false, true, goAway}} {
		l := new(lastLink)
		s := new(Session)
		s.Link = l
		if s.sending = c.sending; c.refused {
			s.writtenLocked(buf.Get(71), nil, false, net.ErrClosed)
		}
		s.out = buf.Get(len(all))
		s.out.B = append(s.out.B, all...)
		s.sendLast()
		if !bytes.Equal(l.sent, c.want) {
			t.Errorf("%+v: sent %q", c, l.sent)
		}
		if s.out != nil {
			t.Errorf("%+v: frames are left", c)
		}
	}
}
