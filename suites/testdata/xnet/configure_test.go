package http2

import (
	"crypto/tls"
	"net"
	"net/http"
	"sort"
	"sync"

	"github.com/chert-http/chert"
)

// configure is in place of ConfigureServer. What s leaves out is chert's default, except
// for the size of frames: tests write larger ones.
func configure(srv *chert.Server, s *Server) {
	srv.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams:          int(s.MaxConcurrentStreams),
		MaxDecoderHeaderTableSize:     int(s.MaxDecoderHeaderTableSize),
		MaxEncoderHeaderTableSize:     int(s.MaxEncoderHeaderTableSize),
		MaxReadFrameSize:              int(s.maxReadFrameSize()),
		MaxReceiveBufferPerConnection: int(s.MaxUploadBufferPerConnection),
		MaxReceiveBufferPerStream:     int(s.MaxUploadBufferPerStream),
		PermitProhibitedCipherSuites:  s.PermitProhibitedCipherSuites,
		CountError:                    s.CountError,
	}
	if s.IdleTimeout != 0 {
		srv.IdleTimeout = s.IdleTimeout
	}
	srv.Protocols = new(http.Protocols)
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(true)
	if srv.TLSConfig == nil {
		srv.TLSConfig = new(tls.Config)
	}
}

// inOrder puts fields into the order that x/net's server sends them in. That of fields
// with different names means nothing.
func inOrder(fields [][2]string) [][2]string {
	key := func(i int) string {
		switch name := fields[i][0]; name {
		case "content-type":
			return "~1"
		case "content-length":
			return "~2"
		default:
			return name // ':' is below the letters
		}
	}
	sort.SliceStable(fields, func(i, j int) bool { return key(i) < key(j) })
	return fields
}

// afterRefusal reads a frame, the next one if it is an answer with status 400 to what is
// to be reset with a PROTOCOL_ERROR.
func (st *serverTester) afterRefusal(code ErrCode) (Frame, error) {
	f, err := st.readFrame()
	if h, ok := f.(*HeadersFrame); ok && code == ErrCodeProtocol && st.decodeHeader(h.HeaderBlockFragment())[0][1] == "400" {
		return st.readFrame()
	}
	return f, err
}

// afterPreface reads a frame that is not one of the server's preface.
func (st *serverTester) afterPreface() (Frame, error) {
	for {
		f, err := st.readFrame()
		switch f.(type) {
		case *SettingsFrame, *WindowUpdateFrame:
		default:
			return f, err
		}
	}
}

// serveOne is in place of ServeConn, and returns when c has been closed.
func serveOne(srv *chert.Server, c net.Conn) {
	srv.Protocols = new(http.Protocols)
	srv.Protocols.SetUnencryptedHTTP2(true)
	one := &oneConn{Conn: c, closed: make(chan struct{})}
	srv.Serve(&oneListener{conn: one})
}

// oneConn knows when it has been closed.
type oneConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *oneConn) Close() error {
	defer c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// oneListener has one connection, and ends with it.
type oneListener struct {
	conn  *oneConn
	given bool
}

func (l *oneListener) Accept() (net.Conn, error) {
	if !l.given {
		l.given = true
		return l.conn, nil
	}
	<-l.conn.closed
	return nil, net.ErrClosed
}

func (l *oneListener) Close() error   { return nil }
func (l *oneListener) Addr() net.Addr { return l.conn.LocalAddr() }
