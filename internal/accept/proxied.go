package accept

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"time"

	"github.com/chert-http/chert/internal/bridge/h1"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/proxyproto"
)

// proxyHeaderTimeout bounds the time from the accept to the end of a PROXY protocol header.
// A proxy sends it with its first bytes.
const proxyHeaderTimeout = 10 * time.Second

// Proxied begins a connection of a loop whose proxy tells the client's address in a header of
// the PROXY protocol.
func Proxied(a *loop.Accept, proxy string, now int64) h1.Before {
	return func(link *conn.Conn, begin func(client string) conn.Next) (conn.Session, int64) {
		s := &preamble{Accept: a, link: link, begin: begin, proxy: proxy, accepted: now}
		return s, s.deadline()
	}
}

// headerFailed logs that a header is wrong, missing or late. The connection ends.
func headerFailed(a *loop.Accept, proxy string, err error) {
	a.Log("chert: PROXY protocol error from %s: %v", proxy, err)
}

// preamble is the session until a header has come.
type preamble struct {
	conn.Quiet
	*loop.Accept
	link     conn.Link
	begin    func(client string) conn.Next
	proxy    string
	accepted int64 // of sys.Nanotime
}

func (s *preamble) deadline() int64 { return s.accepted + int64(proxyHeaderTimeout) }

// Data implements conn.Session.
func (s *preamble) Data(eof bool) conn.Next {
	b := s.link.Buffered()
	h, n, err := proxyproto.Parse(b)
	switch {
	case len(b) == 0 && eof:
		return conn.Close // a check of the proxy's, whether the port is open
	case err == nil && n == 0 && eof:
		err = io.ErrUnexpectedEOF
	case err == nil && n == 0:
		return conn.More
	}
	if err != nil {
		headerFailed(s.Accept, s.proxy, err)
		return conn.Close
	}
	s.link.Discard(n)
	client := clientOf(h, s.proxy)
	if !s.Gate.Admit(client) {
		s.link.Send(&conn.Write{A: s.Refusal()})
		s.Refused(client, true)
		return conn.Linger
	}
	return s.begin(client)
}

// clientOf returns the client's address: the proxy's own if the header has none, as for checks
// of the proxy's health.
func clientOf(h proxyproto.Header, proxy string) string {
	if h.Source.IsValid() {
		return h.Source.String()
	}
	return proxy
}

// Expired implements conn.Session.
func (s *preamble) Expired() conn.Next {
	if s.link.Now() >= s.deadline() { // otherwise the server stops
		headerFailed(s.Accept, s.proxy, os.ErrDeadlineExceeded)
	}
	return conn.Close
}

// Drain implements conn.Session.
func (s *preamble) Drain(since int64) conn.Next {
	s.link.SetDeadline(min(since+int64(conn.DrainNew), s.deadline()))
	return conn.More
}

// Since and New report, as those of HTTP/1 do, that there has been no request.
func (s *preamble) Since(int64) int64 { return s.accepted }
func (s *preamble) New() bool         { return true }

// Closed implements conn.Session.
func (s *preamble) Closed(bool) {}

// Speaks implements conn.Speaker.
func (s *preamble) Speaks() string { return "PROXY header of " + s.proxy }

// readHeader reads the header of a connection on a goroutine, and no byte after it: what follows
// is read through nc, which may be TLS. The caller bounds it.
func readHeader(nc net.Conn, proxy string) (client string, err error) {
	if tc, ok := nc.(*tls.Conn); ok {
		nc = tc.NetConn()
	}
	var room [256]byte
	b := room[:0]
	for {
		h, n, err := proxyproto.Parse(b)
		if err != nil {
			return "", err
		}
		if n > 0 {
			return clientOf(h, proxy), nil
		}
		have := len(b)
		b = append(b, make([]byte, proxyproto.Missing(b))...)
		m, err := nc.Read(b[have:])
		if b = b[:have+m]; m > 0 {
			continue
		}
		if have > 0 && err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return "", err
		}
	}
}

var _ conn.Session = (*preamble)(nil)
