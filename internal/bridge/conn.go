package bridge

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/loop"
)

// Conn speaks HTTP/1 on one connection. The connection's owner calls its
// methods; PeerGone may come from any goroutine.
type Conn struct {
	cfg  *Config        // immutable
	t    conn.Transport // immutable
	peer string         // Request.RemoteAddr; not changed after the first Feed
	// ctx is the parent of the requests' contexts: BaseContext, or what
	// ConnContext made of it. Immutable.
	ctx context.Context
	// cur is the exchange between Feed's Run and the end of Serve.
	cur      atomic.Pointer[exchange]
	progress http1.Progress
	headAt   time.Time // when a head began, kept only for ReadTimeout
	tls      *tls.ConnectionState
	hijacked bool
}

// loopConn is a connection on a loop in one allocation.
type loopConn struct {
	sock conn.Conn
	http Conn
}

// Open starts HTTP/1 on a socket that loop l has accepted.
func (cfg *Config) Open(l *loop.Loop, fd int, peer string) (*conn.Conn, error) {
	c := new(loopConn)
	c.http.init(cfg, &c.sock, peer)
	if err := c.sock.Start(l, fd, peer, cfg.localAddr(fd), &c.http, &cfg.Shared); err != nil {
		return nil, err
	}
	c.http.started()
	return &c.sock, nil
}

// New makes the protocol for a connection that is driven some other way. Its
// SetPeer and SetTLS are called before the first byte of HTTP.
func (cfg *Config) New(t conn.Transport) *Conn {
	c := new(Conn)
	c.init(cfg, t, "")
	c.started()
	return c
}

func (c *Conn) init(cfg *Config, t conn.Transport, peer string) {
	c.cfg, c.t, c.peer, c.ctx = cfg, t, peer, cfg.BaseContext
}

func (c *Conn) started() {
	if f := c.cfg.ConnContext; f != nil {
		ctx := context.WithValue(c.ctx, http.ServerContextKey, c.cfg.HTTPServer())
		if c.ctx = f(ctx, c.t.NetConn()); c.ctx == nil {
			panic("ConnContext returned nil")
		}
	}
	c.setState(http.StateNew)
}

func (c *Conn) setState(s http.ConnState) {
	if hook := c.cfg.ConnState; hook != nil {
		hook(c.t.NetConn(), s)
	}
}

// SetPeer says what requests have as RemoteAddr.
func (c *Conn) SetPeer(peer string) { c.peer = peer }

// SetTLS says what was negotiated.
func (c *Conn) SetTLS(state *tls.ConnectionState) { c.tls = state }

// heads keeps parsed heads: a few kilobytes that are needed only while one is
// parsed.
var heads = sync.Pool{New: func() any { return new(http1.Request) }}

// Feed implements conn.Proto.
func (c *Conn) Feed(b []byte, eof bool) (int, conn.Verdict, []byte) {
	if len(b) == 0 {
		if eof {
			return 0, conn.Close, nil
		}
		return 0, conn.More, nil
	}
	h := heads.Get().(*http1.Request)
	defer heads.Put(h)
	n, err := h.Parse(b, &c.progress, &c.cfg.Head)
	switch {
	case err != nil:
		return c.refuse(err)
	case n == 0 && eof:
		return c.refuse(errTruncated)
	case n == 0:
		if c.cfg.ReadTimeout > 0 && c.headAt.IsZero() {
			c.headAt = time.Now()
		}
		return 0, conn.More, nil
	}
	x, err := c.newExchange(h, b[:n])
	if err != nil {
		return c.refuse(err)
	}
	c.cur.Store(x)
	c.setState(http.StateActive)
	return n, conn.Run, nil
}

var (
	errTruncated = &http1.Error{Status: http.StatusBadRequest, Reason: "the request ends before its head does"}
	errTimeout   = &http1.Error{Status: http.StatusRequestTimeout, Reason: "the request's head did not come in time"}
)

// refuse answers what is not a request that can be served. The connection
// cannot go on: nobody knows where the next request would begin.
func (c *Conn) refuse(err error) (int, conn.Verdict, []byte) {
	c.setState(http.StateActive)
	return 0, conn.Linger, refusal(err)
}

func refusal(err error) []byte {
	status, text := http.StatusBadRequest, ""
	if e, ok := err.(*http1.Error); ok {
		status, text = e.Status, ": "+e.Reason
	}
	b := http1.AppendStatusLine(nil, 1, status)
	b = append(b, "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"...)
	if status == http.StatusNotImplemented {
		// The one refusal whose text programs look for.
		return append(b, "Unsupported transfer encoding"...)
	}
	b = append(b, statusLineText(status)...)
	return append(b, text...)
}

// Expired implements conn.Proto.
func (c *Conn) Expired(partial bool) (conn.Verdict, []byte) {
	if !partial {
		return conn.Close, nil
	}
	_, v, reply := c.refuse(errTimeout)
	return v, reply
}

// PeerGone implements conn.Proto.
func (c *Conn) PeerGone(reset bool) {
	// While a body is being read, the end of the stream is the body's affair:
	// net/http looks for a gone client only behind the body.
	if x := c.cur.Load(); x != nil && (reset || x.bodyDone.Load()) {
		x.gone()
	}
}

// Closed implements conn.Proto.
func (c *Conn) Closed() {
	if !c.hijacked {
		c.setState(http.StateClosed)
	}
}

// Serve implements conn.Proto.
func (c *Conn) Serve() (v conn.Verdict) {
	x := c.cur.Load()
	c.progress, c.headAt = http1.Progress{}, time.Time{}
	returned := false
	defer func() {
		// A panic, or runtime.Goexit; then nobody sees v.
		if !returned {
			if e := recover(); e != nil && e != http.ErrAbortHandler {
				c.logPanic(e)
			}
			v = x.abort()
		}
		c.cur.Store(nil)
	}()
	if x.expectOther {
		// RFC 9110 section 10.1.1: a server MAY answer 417 to an expectation
		// other than 100-continue.
		x.res.Header().Set("Connection", "close")
		x.res.WriteHeader(http.StatusExpectationFailed)
	} else {
		x.setDeadlines()
		c.cfg.handler(&x.req).ServeHTTP(&x.res, &x.req)
	}
	// Not before the handler's last statement: a panic in finish, which calls
	// no handler's code, must not be taken for the handler's.
	v = x.finish()
	returned = true
	if v == conn.More {
		c.setState(http.StateIdle)
		if !c.cfg.KeepAlives() {
			v = conn.Close
		}
	}
	return v
}

func (cfg *Config) handler(r *http.Request) http.Handler {
	if cfg.GeneralOptions && r.RequestURI == "*" && r.Method == http.MethodOptions {
		return generalOptions
	}
	if h := *cfg.Handler; h != nil {
		return h
	}
	return http.DefaultServeMux
}

// generalOptions is net/http's answer to "OPTIONS *".
var generalOptions = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "0")
	if r.ContentLength != 0 {
		// Read a little, so that a well-meant body does not cost the connection.
		const little = 4 << 10
		n, _ := discard(io.LimitReader(r.Body, little+1))
		if w, ok := w.(*response); ok && n > little {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.tooLarge()
		}
	}
})

func (c *Conn) logPanic(e any) {
	stack := make([]byte, 64<<10)
	stack = stack[:runtime.Stack(stack, false)]
	c.cfg.Logf("http: panic serving %v: %v\n%s", c.peer, e, stack)
}
