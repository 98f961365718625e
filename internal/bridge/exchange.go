package bridge

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
)

// Exchange is one request and its response. A version of HTTP makes it part of
// an allocation of its own.
type Exchange struct {
	Req  http.Request
	URL  url.URL
	ctx  reqContext
	Body *Body // nil when there is none
	Res  Response

	c *Client
	m Message

	// Now is when the loop turned to the request, of sys.Nanotime; 0 on
	// goroutines.
	Now   int64
	began int64 // when the handler did, or how long it took, if it is timed
	// target and method are what the placement's records are kept under: the
	// handler may change its request.
	target string
	method place.Method
	routed bool // target is a router's pattern
	quick  bool // the handler may run on the loop
	late   bool // it has held the loop for too long

	facts  atomic.Uint32
	IsHEAD bool
	// ExpectOther: the request has an expectation other than 100-continue.
	ExpectOther bool
	// Shared: other requests have the connection too; see StreamWriter.
	Shared bool
	over   bool // the connection is not this exchange's any more; life guards it

	// life is held by those who use the connection and may come late: other
	// goroutines than the one that runs the handler. It is taken last of all
	// locks, and outlives the exchange where that is reused.
	life   sync.Mutex
	readBy *time.Time // the read deadline: ReadTimeout's or the handler's; nil for none
}

// What is known of the client; bits of Exchange.facts.
const (
	// bodyDone: every byte of the request has been read, so an end of stream means
	// that the client is gone.
	bodyDone uint32 = 1 << iota
	left            // the client is gone
	reset           // and does not listen either
)

func (x *Exchange) is(fact uint32) bool { return x.facts.Load()&fact != 0 }

// Init makes x part of message m, which came by c. reused says that Reset was
// called.
func (x *Exchange) Init(c *Client, m Message, reused bool) {
	if reused {
		x.life.Lock()
		defer x.life.Unlock()
	}
	x.c, x.m, x.over = c, m, false
	x.ctx.x = x
	x.Res.x = x
	// The copy that WithContext makes is the one stored: it is inlined, so
	// nothing is allocated.
	x.Req = *(&http.Request{}).WithContext(&x.ctx)
	x.Req.RemoteAddr = c.Link.Peer()
	if c.more != nil {
		x.Req.TLS = c.more.tls
	}
	if d := c.ReadTimeout; d > 0 {
		by := time.Now().Add(d)
		if m := c.more; m != nil && m.headAt != 0 {
			by = by.Add(time.Duration(m.headAt - sys.Nanotime()))
			m.headAt = 0
		}
		x.readBy = &by
	}
}

// Reset makes x ready for another Init, while another goroutine may be in Gone.
func (x *Exchange) Reset() {
	x.life.Lock()
	defer x.life.Unlock()
	x.Req, x.URL, x.ctx, x.Body, x.Res = http.Request{}, url.URL{}, reqContext{}, nil, Response{}
	x.Now, x.IsHEAD, x.ExpectOther, x.Shared, x.quick, x.late, x.began = 0, false, false, false, false, false, 0
	x.routed, x.target, x.method, x.readBy, x.over = false, "", 0, nil, true
	x.facts.Store(0)
}

// use runs f while the connection is surely the exchange's, or reports false.
func (x *Exchange) use(f func(conn.Link)) bool {
	x.life.Lock()
	defer x.life.Unlock()
	if x.over {
		return false
	}
	f(x.c.Link)
	return true
}

// end is the last moment at which the connection is the exchange's.
func (x *Exchange) end() {
	x.life.Lock()
	x.over = true
	x.life.Unlock()
}

// Gone notes that the client is gone, by a reset or not, for whom the exchange
// is that of client c.
func (x *Exchange) Gone(c *Client, byReset bool) {
	x.life.Lock()
	defer x.life.Unlock()
	// While a body is being read, the end of the stream is the body's affair:
	// net/http looks for a gone client only after the body.
	if x.over || x.c != c || !byReset && !x.is(bodyDone) {
		return
	}
	if byReset {
		x.facts.Or(reset)
	}
	x.gone()
}

// gone tells the handler that the client has left.
func (x *Exchange) gone() {
	x.facts.Or(left)
	x.ctx.cancel(context.Canceled)
}

// limitReads bounds reads on chert's own account. restore puts back what the
// handler has set.
func (x *Exchange) limitReads(until time.Time) (restore func()) {
	x.use(func(l conn.Link) {
		if by := x.readDeadline(); !by.IsZero() && by.Before(until) {
			until = by
		}
		l.SetReadDeadline(until)
	})
	return func() { x.use(func(l conn.Link) { l.SetReadDeadline(x.readDeadline()) }) }
}

func (x *Exchange) readDeadline() time.Time {
	if x.readBy == nil {
		return time.Time{}
	}
	return *x.readBy
}

// watchPeer begins to look for a gone client, if all of the request has been
// read; else the body's end begins it.
func (x *Exchange) watchPeer() {
	gone := false
	if x.is(bodyDone) && x.use(func(l conn.Link) { gone = l.WatchPeer() }) && gone {
		x.gone()
	}
}

// AllRead notes that the whole request has been read.
func (x *Exchange) AllRead() {
	x.facts.Or(bodyDone)
	if x.ctx.isWatched() {
		x.watchPeer()
	}
}

// Serve runs the handler, or answers that the server is busy, and says what
// becomes of the connection. It is called between the Link's Enter and Leave.
// After runtime.Goexit it does not return.
func (x *Exchange) Serve(busy bool) (next conn.Next) {
	returned := false
	defer func() {
		if returned {
			return
		}
		e := recover()
		if e != nil && e != http.ErrAbortHandler {
			x.c.LogPanic(x.c.Link, e)
		}
		x.m.Release()
		next = x.abort()
		if e == nil && next != conn.Detached {
			x.c.Link.Abandon() // runtime.Goexit
		}
	}()
	switch {
	case busy:
		Busy.ServeHTTP(x.writer(), &x.Req)
	case x.ExpectOther:
		// RFC 9110 section 10.1.1: a server MAY answer 417 to an expectation
		// other than 100-continue.
		x.c.Refuse(http.StatusExpectationFailed, "unknown expectation", []byte(x.Req.Method+" "+x.Req.RequestURI+" "+x.Req.Proto))
		x.Res.Header().Set("Connection", "close")
		x.Res.WriteHeader(http.StatusExpectationFailed)
	case x.c.Slots != nil && x.is(reset):
		// The client has left while it waited for a slot: nobody would see what
		// the handler does. One that has only closed its side still reads.
		panic(http.ErrAbortHandler)
	default:
		if x.readBy != nil {
			x.c.Link.SetReadDeadline(*x.readBy)
		}
		if d := x.c.WriteTimeout; d > 0 {
			x.c.Link.SetWriteDeadline(time.Now().Add(d))
		}
		x.run()
	}
	// Not before the handler's last statement: a panic in here, which calls no
	// handler's code, must not be taken for the handler's.
	x.m.Release()
	next = x.finish()
	returned = true
	return next
}

// finish completes the response after the handler has returned and says what
// becomes of the connection.
func (x *Exchange) finish() conn.Next {
	x.ctx.cancel(context.Canceled)
	if x.Body != nil {
		x.Body.interrupt()
	}
	next, o := x.Res.finish()
	if next == conn.Detached {
		return next
	}
	x.c.Follow(&o)
	if x.Body != nil {
		x.Body.Close()
		if !x.Res.broken && (x.Body.unfinished() || x.Body.earlyClose) {
			next = conn.Linger
		}
	}
	if x.Req.MultipartForm != nil {
		x.Req.MultipartForm.RemoveAll()
	}
	x.end()
	return next
}

// abort ends the connection after a handler's panic. What was already sent
// towards the wire goes out, so that the client sees how far it came.
func (x *Exchange) abort() conn.Next {
	x.ctx.cancel(context.Canceled)
	if x.Body != nil {
		x.Body.interrupt()
	}
	next, o := x.Res.abort()
	x.c.Follow(&o)
	if next != conn.Detached && x.Body != nil {
		if x.Body.unfinished() {
			next = conn.Linger
		}
		x.Body.invalidate()
	}
	x.end()
	return next
}

// hijack takes the connection from the server. A goroutine of the handler that
// still reads the body is stopped first, and finds it closed.
func (x *Exchange) hijack() (net.Conn, []byte, error) {
	if x.Body != nil {
		x.Body.interrupt()
		x.Body.mu.Lock()
		defer x.Body.mu.Unlock()
	}
	x.life.Lock()
	defer x.life.Unlock()
	nc, rest, err := x.c.Link.Hijack()
	if err == nil {
		x.over = true
		if x.Body != nil {
			x.Body.closed = true
		}
	}
	return nc, rest, err
}

// Watched reports whether somebody may be told of the context's end, and so may
// hold on to the exchange.
func (x *Exchange) Watched() bool { return x.ctx.isWatched() }

// Failure is how a connection ends that would not take what was written: a
// client that stopped reading gets a reset, so that nothing waits for it.
func Failure(err error) conn.Next {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return conn.Reset
	}
	return conn.Close
}

// Busy is the answer of a server without a slot for one more handler.
var Busy direct.Handler = direct.NewResponse(http.StatusServiceUnavailable, http.Header{
	"Content-Type": {"text/plain; charset=utf-8"}, "Retry-After": {"1"},
}, []byte("503 Service Unavailable\n"))

// LogPanic logs a handler's panic with its stack.
func (cfg *Config) LogPanic(l conn.Link, e any) {
	stack := make([]byte, 64<<10)
	stack = stack[:runtime.Stack(stack, false)]
	cfg.Logf("http: panic serving %v: %v\n%s", l.Peer(), e, stack)
}
