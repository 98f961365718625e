package bridge

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// Exchange is one request and its response. A version of HTTP embeds it in an
// allocation of its own.
type Exchange struct {
	Req  http.Request
	URL  url.URL
	Body *Body // nil when there is none
	Res  Response

	c *Client
	m Message

	rare *rare // nil until something of it is needed
	Time Timing
	// target and method are those of the request, and route is the pattern that a
	// router has matched before the handler ran: keys of the placement's records.
	// Copies, since the handler may change its request; immutable once the handler
	// may run.
	target string
	route  string
	method place.Method
	Proto  tally.Proto // immutable, as the following
	Way    stats.Way
	learns bool // the placement has a record of it
	quick  bool // the handler may run on the loop

	facts  atomic.Uint32
	IsHEAD bool
	// Refusal: the request is answered without the handler.
	Refusal Refusal
	// Shared: other requests have the connection too; see streamWriter.
	Shared bool
	over   bool // the connection no longer belongs to this exchange; guarded by life

	// life is held by goroutines other than the handler's while they use the
	// connection, since they may be late. It is the last in the order of locks.
	life sync.Mutex

	cares atomic.Pointer[cares] // nil until Done, Err or AfterFunc is called
}

// rare is what few exchanges need.
type rare struct {
	readBy   time.Time    // the read deadline: ReadTimeout's or the handler's; zero for none
	writeBy  time.Time    // the handler's write deadline, if ownWrite; zero for none
	ownWrite bool         // the handler has set it: WriteTimeout does not matter
	taken    conn.Session // after Response.TakeOver, Outlive and Hold; the handler's until it has returned
	ending   *Ending      // the same
}

// seldom returns x.rare, which it makes at first. life is held, or the handler has not
// begun.
func (x *Exchange) seldom() *rare {
	if x.rare == nil {
		x.rare = new(rare)
	}
	return x.rare
}

// few returns what is known of x.rare, which must not be changed.
func (x *Exchange) few() *rare {
	if x.rare == nil {
		return &noRare
	}
	return x.rare
}

var noRare rare

// Bits of Exchange.facts: of the client, of the handler, and of its context.
const (
	// unread: not every byte of the request has been read. Afterwards an end of stream means
	// that the client is gone.
	unread   uint32 = 1 << iota
	left            // the client is gone
	reset           // and does not read either
	handling        // the handler has begun, and returned; not kept for handlers that begin on loops
	returned
	cancelled // the context has ended
)

func (x *Exchange) is(fact uint32) bool { return x.facts.Load()&fact != 0 }

// SetContext makes x the context of its request, which Init needs. It is called right after new, where the
// compiler knows that the request is zero: there WithContext, inlined, neither copies it nor needs write barriers.
// BenchmarkNewExchange of package h1 shows the difference.
func (x *Exchange) SetContext() { x.Req = *new(http.Request).WithContext((*reqContext)(x)) }

// Init initializes x, after SetContext, as part of message m, received on c. Its Time is set already, if
// its head came in parts.
func (x *Exchange) Init(c *Client, m Message) {
	x.c, x.m = c, m
	x.Res.x = x
	x.Req.RemoteAddr = c.Link.Peer().RemoteAddr
	if c.HasTLS() {
		x.Req.TLS = c.more.tls.TLS()
	}
	if d := c.ReadTimeout; d > 0 {
		x.seldom().readBy = time.Now().Add(d - time.Duration(x.Time.Head))
	}
}

// use runs f while the connection is guaranteed to be the exchange's, or reports false.
func (x *Exchange) use(f func()) bool {
	x.life.Lock()
	defer x.life.Unlock()
	if x.over {
		return false
	}
	f()
	return true
}

// Gone records that the client has disconnected, by a reset or not, if the
// connection is still the exchange's.
func (x *Exchange) Gone(byReset bool) {
	x.life.Lock()
	defer x.life.Unlock()
	// While a body is being read, the end of the stream belongs to the body:
	// net/http detects a disconnected client only after the body.
	if x.over || !byReset && x.is(unread) {
		return
	}
	if byReset {
		x.facts.Or(reset)
	}
	x.gone()
}

// gone notifies the handler that the client has disconnected.
func (x *Exchange) gone() {
	x.facts.Or(left)
	(*reqContext)(x).cancel(context.Canceled)
}

// limitReads sets a read deadline of chert's own. restore restores the
// handler's.
func (x *Exchange) limitReads(until time.Time) (restore func()) {
	x.use(func() {
		if by := x.readDeadline(); !by.IsZero() && by.Before(until) {
			until = by
		}
		x.peer().SetReadDeadline(until)
	})
	return func() { x.use(func() { x.peer().SetReadDeadline(x.readDeadline()) }) }
}

func (x *Exchange) readDeadline() time.Time { return x.few().readBy }

// writeBy is when the response was to be sent, as the handler or WriteTimeout has it. life is held.
func (x *Exchange) writeBy() time.Time {
	if r := x.few(); r.ownWrite {
		return r.writeBy
	}
	if d := x.c.WriteTimeout; d > 0 {
		return time.Now().Add(d - time.Duration(sys.Nanotime()-x.Time.Since))
	}
	return time.Time{}
}

// watchPeer starts to watch for the client's disconnection, if the whole
// request has been read; otherwise the body's end does. What shares a connection
// does not have to read in order to watch.
func (x *Exchange) watchPeer() {
	gone := false
	if (x.Shared || !x.is(unread)) && x.use(func() { gone = x.peer().WatchPeer() }) && gone {
		x.gone()
	}
}

// Cut ends the request when the handler that Serve has called has panicked or ends its
// goroutine, and returns what Serve would.
func (x *Exchange) Cut(e exec.End) conn.Next {
	x.c.LogEnd(e)
	next := x.conclude((*Response).abort)
	if e.Exited() && next != conn.Detached && !x.Shared { // what shares a connection is counted by its session
		x.accountEarly()
	}
	return next
}

// Serve runs the handler, or answers what the request is refused for, and returns how the
// connection continues. It is called by what a Link runs, as Cut is.
func (x *Exchange) Serve() conn.Next {
	switch {
	case x.Refusal == ForRoom:
		Busy.ServeHTTP(x.writer(), &x.Req)
	case x.Refusal == ForExpectation:
		// RFC 9110 section 10.1.1: a server MAY answer 417 to an expectation
		// other than 100-continue.
		x.Res.Header().Set("Connection", "close")
		x.Res.WriteHeader(http.StatusExpectationFailed)
	case x.c.Slots != nil && x.is(reset):
		// The client has disconnected while it waited for a slot, so a response
		// would be lost. A client that has only closed its side still reads.
		panic(http.ErrAbortHandler)
	default:
		if by := x.few().readBy; !by.IsZero() {
			x.peer().SetReadDeadline(by)
		}
		if d := x.c.WriteTimeout; d > 0 {
			x.peer().SetWriteDeadline(time.Now().Add(d))
		}
		x.run()
	}
	return x.conclude((*Response).finish)
}

// conclude ends the exchange, whose handler runs no more, and the response with end. It returns how
// the connection continues.
func (x *Exchange) conclude(end func(*Response) (conn.Next, Outcome)) conn.Next {
	x.m.Release()
	(*reqContext)(x).cancel(context.Canceled)
	if x.Body != nil {
		x.Body.interrupt()
	}
	next, o := end(&x.Res)
	if next == conn.Detached {
		x.handOver()
		return next
	}
	if o.watcher != nil {
		x.c.Follow(x.tail(), &o)
	}
	if x.Body != nil {
		x.Body.Close()
		if !x.Res.broken && x.Body.Unfinished() {
			next = conn.Linger
		}
	}
	x.removeFiles()
	x.life.Lock()
	x.over = true // from here on the connection is no longer the exchange's
	x.life.Unlock()
	return next
}

// removeFiles removes the files of a form that the handler has parsed.
func (x *Exchange) removeFiles() {
	if x.Req.MultipartForm != nil {
		x.Req.MultipartForm.RemoveAll()
	}
}

// cede ends the exchange's use of the connection by take, unless that fails. A goroutine of the
// handler that still reads the body is stopped first, with an error.
func (x *Exchange) cede(take func() error) error {
	b := x.Body
	if b != nil {
		b.interrupt()
		b.mu.Lock()
		defer b.mu.Unlock()
	}
	x.life.Lock()
	defer x.life.Unlock()
	if err := take(); err != nil {
		return err
	}
	if x.over = true; b != nil {
		b.closed = true
	}
	return nil
}

// Failure returns how a connection ends after a failed write: a client that
// stopped reading gets a reset, so that nothing waits for it.
func Failure(err error) conn.Next {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return conn.Reset
	}
	return conn.Close
}

// LogEnd logs the panic of user code that was called for the client, if there was one.
func (c *Client) LogEnd(e exec.End) {
	if v, ok := e.Panic(); ok {
		c.Logf("http: panic serving %v: %v\n%s", c.Link.Peer().RemoteAddr, v, exec.Stack())
	}
}
