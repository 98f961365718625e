package outbound

import (
	"net/http"
	"sync"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/forward"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/origin"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
)

// A Plan is a request that is to be forwarded: what a handler gives a server that can do so. It is
// pooled: the server ends it by Begin or Drop, after which it must not be used.
type Plan struct {
	Route Route
	Terms *Terms
	// Request edits the head. Its slices must stay valid until Begin.
	Request forward.Request
	// Again: the request may be sent again although a server may have received it, if no byte
	// of a response has come.
	Again bool
	// Via and Outer are those of responses; see forward.Response.
	Via   string
	Outer *forward.Outer
	// Keep is how many bytes of a body that has not arrived are kept, so that they can be sent again,
	// and Gather how many have to come before Route.Wait is called.
	Keep, Gather int

	// Open, Chunked and Asks are the server's, as Out and Sent are: the body has not arrived, its
	// framing, and that it is sent when the other server asks for it (RFC 9110 section 10.1.1).
	Open, Chunked, Asks bool
	// Out and Sent are the server's: what is to be sent, and what that means for the response.
	Out  *buf.Buf
	Sent forward.Sent
}

var plans = sync.Pool{New: func() any { return new(Plan) }}

// NewPlan returns an empty Plan.
func NewPlan() *Plan { return plans.Get().(*Plan) }

func (p *Plan) free() {
	*p = Plan{}
	plans.Put(p)
}

// Drop ends plan, which is not carried out, if it is a Plan. why is reason.None if the request is answered without it.
func Drop(plan any, why reason.Code) {
	p, ok := plan.(*Plan)
	if !ok {
		return
	}
	p.Out.Drop()
	p.Route.Done(why)
	p.free()
}

// A Route stands for the servers that a request may go to. Its methods must not block; the
// loop's driver calls them. Of each try there is one call, of Failed or of Answered, and Done follows
// the last Answered; but when the client is gone Done comes at any time, and last.
type Route interface {
	// Wait is called first of all, when the plan is carried out. If the request has to wait for a server, x.Start
	// follows; otherwise now is the server, or nil if there is none: then Instead responds.
	Wait(x *Exchange) (now *Server, waits bool)
	// Failed is called when a try has failed, and returns the server of the next one, or nil if
	// there is none: then Instead responds. idle is for how long the connection of the try had
	// been idle, and err may say more. fresh: the next one must have a new connection.
	Failed(a *retry.Attempt, idle int64, err error) (next *Server, fresh bool)
	// Answered is called when the head of the final response has come, of HTTP/1.minor; reused: the
	// connection of the try had carried a request before. It returns field lines to add to it, each
	// with its CRLF; or next, which gets the request on a new connection, while the response is
	// dropped.
	Answered(status int, minor uint8, reused bool) (add []byte, next *Server)
	// Gone is called when a part of the body has been sent that is not kept.
	Gone()
	// Spoilt is called when the client has not sent its body as announced, before any Answered of the
	// latest try, and nothing is tried any more: Instead responds, with status.
	Spoilt(status int, why string)
	// Done is called when the response has ended: reason.None if it is whole.
	Done(why reason.Code)
	// Instead returns the response to a request that no server has answered.
	Instead() *direct.Response
}

// A Client is who waits for the response. The Exchange calls it on the loop; an error means that the
// client is gone, and the Exchange is over.
type Client interface {
	// Response sends the head of a response, whose spans are offsets into head. Interim ones may
	// come before the final one. add are further field lines.
	Response(head []byte, r *http1.Response, add []byte) error
	// Body sends a part of the body. The memory beyond it is free, up to its capacity.
	Body(p []byte) error
	// Flush is called when there is nothing more to be sent now. full: no more is to come before
	// Exchange.Resume.
	Flush() (full bool, err error)
	// Room is called when Exchange.Room may report true again. It must not call the Exchange.
	Room()
	// End ends the response, with the trailer section that b and fields are. It is the last call.
	End(b []byte, fields []http1.Field)
	// Fail is the last call when there is no response, or, if Response has been called for a final
	// one, the rest of it will not come.
	Fail(why reason.Code)
}

// An Exchange is a request that is forwarded. Use it from one loop only.
type Exchange struct {
	loop   *loop.Loop
	route  Route
	client Client
	terms  *Terms
	conn   *Conn // nil before a try and after the end
	// out is the request, nil when it will not be sent again.
	out      *buf.Buf
	want     http1.Expected
	up       upload
	again    bool
	answered bool // a final response has begun

	full   int64 // since when the client has no room; 0: it has
	waited int64 // how long that was before
}

// Begin carries out a plan. It may end before Begin returns.
func (x *Exchange) Begin(l *loop.Loop, p *Plan, c Client) {
	x.Prepare(l, p, c)
	x.Run()
}

// Prepare makes x the exchange of a plan, which is carried out by Run. In between the Exchange can end, and Hold
// can be called.
func (x *Exchange) Prepare(l *loop.Loop, p *Plan, c Client) {
	*x = Exchange{loop: l, route: p.Route, client: c, terms: p.Terms, out: p.Out, want: p.Sent.Expected, again: p.Again,
		up: upload{keep: p.Keep, open: p.Open, chunked: p.Chunked, asks: p.Asks}}
	p.free()
}

// Run begins what Prepare was called for. It may end before Run returns.
func (x *Exchange) Run() {
	if s, waits := x.route.Wait(x); !waits {
		x.Start(s)
	}
}

// Start begins the first try, at s, of a request that has waited for it. With nil there is none.
func (x *Exchange) Start(s *Server) { x.try(s, false) }

// Method returns what matters of the request's method to its response: HEAD, or GET.
func (x *Exchange) Method() string {
	if x.want.Head {
		return http.MethodHead
	}
	return http.MethodGet
}

// Route returns the plan's.
func (x *Exchange) Route() Route { return x.route }

// Do runs f on the exchange's loop, and reports false if that has ended. Safe for concurrent use, as long
// as the Exchange is in use.
func (x *Exchange) Do(f func()) bool { return x.loop.Do(f) }

// try begins tries until one has begun.
func (x *Exchange) try(s *Server, fresh bool) {
	for s != nil {
		a, idle := x.start(s, fresh)
		if a == nil {
			return
		}
		s, fresh = x.route.Failed(a, idle, nil)
	}
	x.out = x.out.Drop()
	x.client.Fail(reason.None)
}

// start begins one try, or returns how it has failed.
func (x *Exchange) start(s *Server, fresh bool) (a *retry.Attempt, idle int64) {
	all, now := localOf(x.loop), x.loop.Now()
	if !fresh {
		if c := all.take(s, x.terms, now, x.again); c != nil {
			return x.reuse(c, now)
		}
	}
	s.Dials.Add(1)
	c := &Conn{server: s, since: after(now, x.terms.Connect)}
	c.begin(x)
	if e := c.out.Dial(x.loop, s.remote, c, &x.terms.shared, c.since); e != 0 {
		x.conn = nil
		return &retry.Attempt{Reason: origin.DialReason(e)}, 0
	}
	return nil, 0
}

// reuse is start on a connection that was idle.
func (x *Exchange) reuse(c *Conn, now int64) (a *retry.Attempt, idle int64) {
	s := c.server
	s.Reused.Add(1)
	c.begin(x)
	if c.send() == nil {
		return nil, 0
	}
	c.x, x.conn = nil, nil
	c.out.Act(conn.Reset)
	a = &retry.Attempt{Reason: reason.Closed, Reused: true}
	if s.tls != nil { // some of its records may have been sent
		a.Progress = retry.Sent
	}
	return a, now - c.since
}

// failed is called when a try has failed that had begun; its Conn has been let go.
func (x *Exchange) failed(a *retry.Attempt, idle int64, err error) {
	if x.answered {
		x.end(a.Reason)
		x.client.Fail(a.Reason)
		return
	}
	x.try(x.route.Failed(a, idle, err))
}

// end is called when the exchange is over whose response had begun, or whose client is gone.
func (x *Exchange) end(why reason.Code) {
	x.out = x.out.Drop()
	x.route.Done(why)
}

// Cancel ends the exchange because its client is gone. The Client is not called any more.
func (x *Exchange) Cancel() {
	x.part()
	x.end(reason.ClientGone)
}

// part lets go of the Conn, which ends.
func (x *Exchange) part() {
	if c := x.conn; c != nil {
		x.conn, c.x = nil, nil
		switch {
		case c.shaking != nil:
			c.out.Abort()
		case !c.inData:
			c.out.Act(conn.Reset)
		}
	}
}

// fills notes that the client has no room.
func (x *Exchange) fills() {
	if x.full == 0 {
		x.full = x.loop.Now()
	}
}

// empties notes that the client has room, or is not waited for any more. It returns how long it had none, in all.
func (x *Exchange) empties() int64 {
	if x.full != 0 {
		x.waited += x.loop.Now() - x.full
		x.full = 0
	}
	return x.waited
}

// Resume is called when the client has room again.
func (x *Exchange) Resume() {
	x.empties()
	if x.conn != nil {
		x.conn.out.Resume()
	}
}
