package bridge

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
)

// Conn speaks HTTP/1 on one connection. The connection's owner calls its
// methods; PeerGone may come from any goroutine.
type Conn struct {
	cfg *Config        // immutable
	t   conn.Transport // immutable
	// ctx is the parent of the requests' contexts: BaseContext, or what
	// ConnContext made of it. Immutable.
	ctx context.Context
	// cur is the exchange between Feed's Run and the end of Serve.
	cur         atomic.Pointer[exchange]
	progress    http1.Progress
	headAt      int64 // when a head began, of sys.Nanotime, kept only for ReadTimeout
	tls         *tls.ConnectionState
	hijacked    bool
	peer        direct.Peer
	onLoop      bool    // immutable
	direct      *parsed // a request for the direct way, between Feed and Serve
	block       *block  // of the request at hand, with ReuseRequests
	quick       bool    // the handler at hand may run on the loop
	busy        bool    // the request at hand was refused
	learning    bool    // how it runs is of interest
	runs        uint32
	memo        place.Memo
	began, took int64 // of the handler, in sys.Nanotime's nanoseconds, if it is timed
}

// loopConn is a connection on a loop in one allocation.
type loopConn struct {
	sock conn.Conn
	http Conn
}

// Open starts HTTP/1 on a socket that loop l has accepted.
func (cfg *Config) Open(l *loop.Loop, fd int, peer string) (*conn.Conn, error) {
	c := new(loopConn)
	c.http.init(cfg, &c.sock)
	c.http.onLoop = true
	c.http.learning = cfg.Placement == Adaptive
	if err := c.sock.Start(l, fd, peer, cfg.localAddr(fd), &c.http, &cfg.Shared); err != nil {
		return nil, err
	}
	c.http.started()
	return &c.sock, nil
}

// New makes the protocol for a connection that is driven some other way. Its
// SetTLS is called before the first byte of HTTP.
func (cfg *Config) New(t conn.Transport) *Conn {
	c := new(Conn)
	c.init(cfg, t)
	c.started()
	return c
}

func (c *Conn) init(cfg *Config, t conn.Transport) {
	c.cfg, c.t, c.ctx = cfg, t, cfg.BaseContext
}

func (c *Conn) started() {
	c.peer = direct.PeerOf(c.t.Peer())
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

// SetTLS says what was negotiated.
func (c *Conn) SetTLS(state *tls.ConnectionState) { c.tls = state }

// Feed implements conn.Proto.
func (c *Conn) Feed(b []byte, eof bool) (int, conn.Verdict, []byte) {
	if len(b) == 0 {
		if eof {
			return 0, conn.Close, nil
		}
		return 0, conn.More, nil
	}
	p := parseds.Get().(*parsed)
	n, err := p.head.Parse(b, &c.progress, &c.cfg.Head)
	switch {
	case err != nil:
		p.free()
		return c.refuse(err)
	case n == 0 && eof:
		p.free()
		return c.refuse(errTruncated)
	case n == 0:
		p.free()
		if c.cfg.ReadTimeout > 0 && c.headAt == 0 {
			c.headAt = sys.Nanotime()
		}
		return 0, conn.More, nil
	}
	if whole := c.takeDirect(p, b, n); whole > 0 {
		c.setState(http.StateActive)
		return whole, conn.RunWhole, nil
	}
	x, err := c.newExchange(&p.head, b[:n])
	p.free()
	if err != nil {
		return c.refuse(err)
	}
	c.judge(x, "")
	c.cur.Store(x) // behind judge: Late may come at once
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
	if c.cfg.ReuseRequests {
		c.curLock().Lock()
		defer c.curLock().Unlock()
	}
	// While a body is being read, the end of the stream is the body's affair:
	// net/http looks for a gone client only behind the body.
	if x := c.cur.Load(); x != nil && (reset || x.bodyDone.Load()) {
		if reset {
			x.reset.Store(true)
		}
		x.gone()
	}
}

// Closed implements conn.Proto.
func (c *Conn) Closed() {
	if p := c.direct; p != nil {
		c.direct = nil
		c.giveUp(p)
	}
	if !c.hijacked {
		c.setState(http.StateClosed)
	}
}

// Serve implements conn.Proto.
func (c *Conn) Serve() conn.Verdict {
	c.progress, c.headAt = http1.Progress{}, 0
	if c.direct != nil {
		if c.busy {
			c.busy = false
			c.direct.handler = busyAnswer
		}
		if c.direct.rest.begun {
			return c.resumeDirect()
		}
		return c.serveDirect()
	}
	return c.servePlain()
}

// servePlain runs the handler as net/http does.
func (c *Conn) servePlain() (v conn.Verdict) {
	x := c.cur.Load()
	c.began = 0
	returned := false
	defer func() {
		// A panic, or runtime.Goexit; then nobody sees v.
		if !returned {
			if e := recover(); e != nil && e != http.ErrAbortHandler {
				c.logPanic(e)
			}
			v = x.abort()
			if c.learning && v != conn.Detached {
				c.timed()
				c.learn(x, false)
			}
		}
		c.dropCur()
	}()
	switch {
	case c.busy:
		c.busy = false
		busyAnswer.ServeHTTP(&x.res, &x.req)
	case x.expectOther:
		// RFC 9110 section 10.1.1: a server MAY answer 417 to an expectation
		// other than 100-continue.
		x.res.Header().Set("Connection", "close")
		x.res.WriteHeader(http.StatusExpectationFailed)
	case c.cfg.Shared.Limits.Slots != nil && x.reset.Load():
		// The client has left while it waited for a slot: nobody would see what
		// the handler does. One that has only closed its side still reads.
		panic(http.ErrAbortHandler)
	default:
		x.setDeadlines()
		c.serve(x)
	}
	// Not before the handler's last statement: a panic in finish, which calls
	// no handler's code, must not be taken for the handler's.
	v = x.finish()
	returned = true
	if c.learning && v != conn.Detached {
		c.learn(x, x.res.missing)
	}
	if b := c.block; b != nil && v != conn.Detached {
		c.dropCur()
		c.block = nil
		b.free()
	}
	return c.settle(v)
}

// curLocks guard who tells an exchange of the peer against its reuse. There are
// few, since an idle connection needs none.
var curLocks [64]sync.Mutex

func (c *Conn) curLock() *sync.Mutex {
	return &curLocks[uintptr(unsafe.Pointer(c))/unsafe.Sizeof(*c)%uintptr(len(curLocks))]
}

// dropCur ends the use of the present exchange by PeerGone.
func (c *Conn) dropCur() {
	if c.cfg.ReuseRequests {
		// Who is telling it must have told: it may soon be another's.
		c.curLock().Lock()
		defer c.curLock().Unlock()
	}
	c.cur.Store(nil)
}

// settle ends an exchange whose answer says v.
func (c *Conn) settle(v conn.Verdict) conn.Verdict {
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
	return cfg.userHandler()
}

func (cfg *Config) userHandler() http.Handler {
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
	c.cfg.Logf("http: panic serving %v: %v\n%s", c.t.Peer(), e, stack)
}
