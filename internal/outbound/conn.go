package outbound

import (
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/forward"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/origin"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tlsio"
)

// A Conn is a connection to a Server, and the Session on it.
type Conn struct {
	// What of conn.Session is about user code, of which there is none.
	conn.Quiet
	out    conn.Out
	server *Server
	terms  *Terms    // of the exchange, or the last one
	x      *Exchange // nil while it is idle, or about to end
	body   http1.Body
	parsed http1.Progress
	// shaking is the handshake, nil without TLS and when its end has been seen. Meanwhile a goroutine
	// may have out.
	shaking *tlsio.Connect
	since   int64 // when it became idle, of sys.Nanotime; before, by when it must be up, 0 for any time
	idle    bool  // it is in a pool
	up      bool  // it is connected, TLS and all
	reused  bool  // the request is not its first
	got     bool  // a byte of the response has come
	inBody  bool  // the head of the final response has come
	inData  bool  // Data is running, whose caller does what it returns
	asks    bool  // the body waits for a 100
}

var (
	_ conn.Dialled = (*Conn)(nil)
	_ conn.Duplex  = (*Conn)(nil)
)

// begin gives c to x.
func (c *Conn) begin(x *Exchange) {
	c.reused = c.up
	c.idle, c.got, c.inBody, c.asks = false, false, false, false
	c.x, c.terms, c.parsed = x, x.terms, http1.Progress{}
	x.conn, x.up.stopped = c, false
}

// send sends the request on an idle connection.
func (c *Conn) send() error {
	err := c.write()
	if err == nil {
		c.out.Act(conn.More)
	}
	return err
}

func (c *Conn) write() error {
	x := c.x
	switch now := x.loop.Now(); {
	case !x.up.open:
		c.out.SetDeadline(after(now, c.terms.Response))
	case x.up.asks:
		c.asks = true
		c.out.SetDeadline(after(now, continueWait))
	default:
		c.out.SetDeadline(0) // it is the client that is waited for
	}
	err := c.out.Send(&conn.Write{A: x.out.B})
	if err == nil && x.up.open && !c.asks {
		x.client.Room()
	}
	return err
}

// goAhead ends the wait for a 100.
func (c *Conn) goAhead() {
	if c.asks {
		c.asks, c.x.up.asks = false, false
		c.out.SetDeadline(0)
		c.x.client.Room()
	}
}

// Duplex implements conn.Duplex: a server may answer a request that it does not read.
func (c *Conn) Duplex() bool { return c.x != nil }

// Connected implements conn.Dialled.
func (c *Conn) Connected(e sys.Errno) conn.Next {
	switch {
	case e != 0:
		c.fail(origin.DialReason(e), nil)
		return conn.Close
	case c.x == nil:
		return conn.Close
	case c.server.tls != nil:
		c.shaking = &tlsio.Connect{Link: &c.out, TLS: c.server.tls, By: c.since, Upper: c}
		c.out.SetDeadline(0)
		c.out.Switch(c.shaking)
		return conn.Elsewhere
	}
	return c.begun()
}

// shaken is Data when the handshake has ended.
func (c *Conn) shaken() conn.Next {
	err := c.shaking.Err
	c.shaking = nil
	switch {
	case c.x == nil:
		return conn.Close
	case err != nil:
		c.fail(origin.TLSReason(err), err)
		return conn.Close
	}
	return c.begun()
}

// begun sends the request on a new connection.
func (c *Conn) begun() conn.Next {
	c.up = true
	if err := c.write(); err != nil {
		c.fail(reason.Reset, nil)
		return conn.Reset
	}
	return conn.More
}

// Data implements conn.Session. What it calls of the client may end the client's connection, and with
// it the exchange: Cancel leaves the end of this connection to Data then.
func (c *Conn) Data(eof bool) conn.Next {
	switch {
	case c.shaking != nil:
		return c.shaken()
	case c.x == nil:
		return c.unasked(eof)
	}
	if c.x.up.open && c.up && !c.out.Out().Blocked() {
		c.x.client.Room()
	}
	c.inData = true
	next := c.data(eof)
	c.inData = false
	return next
}

func (c *Conn) data(eof bool) conn.Next {
	for !c.inBody {
		b := c.out.Buffered()
		c.got = c.got || len(b) > 0
		res := &localOf(c.out.Loop()).res
		n, err := res.Parse(b, &c.x.want, &c.parsed, &c.terms.Head)
		if err == nil && n > 0 && !res.Interim() {
			// Here, as the client's side cannot respond otherwise once it is given the head.
			err = forward.CheckResponse(b[:n], res)
		}
		switch {
		case err != nil:
			c.fail(origin.Malformed(err), nil)
			return conn.Reset
		case n > 0:
			if err := c.head(b[:n], res); err != nil || c.x == nil {
				return c.clientGone()
			}
		case eof:
			c.fail(reason.Closed, nil)
			return conn.Close
		default:
			return c.flush()
		}
	}
	return c.pass(eof)
}

// unasked is Data of a connection without a request.
func (c *Conn) unasked(eof bool) conn.Next {
	if c.idle {
		localOf(c.out.Loop()).drop(c)
		c.idle = false
	}
	if eof {
		now := c.out.Loop().Now()
		c.server.age.Closed(now, now-c.since)
		return conn.Close
	}
	if len(c.out.Buffered()) == 0 {
		return conn.More
	}
	return conn.Reset
}

// head passes on the head of a response. If the request is sent to another server instead, c is left
// without an exchange.
func (c *Conn) head(b []byte, res *http1.Response) error {
	x := c.x
	var add []byte
	if !res.Interim() {
		if res.IdleSeconds >= 0 {
			c.server.age.Announced(time.Duration(res.IdleSeconds) * time.Second)
		}
		var next *Server
		if add, next = x.route.Answered(res.Status, res.Minor, c.reused); next != nil {
			c.x, x.conn = nil, nil
			x.try(next, true)
			return nil
		}
		c.inBody, c.body = true, res.Body()
		x.answered = true
		x.out = x.out.Drop()
		// RFC 9112 section 9.3: a server that does not want the rest of a body says so by its
		// response. One of success may be made of the body while that arrives. RFC 9110 section
		// 10.1.1: a final response instead of a 100 means that the body need not be sent.
		if x.up.open && (res.Status >= 300 || c.asks) {
			x.stop()
		}
	}
	var err error
	if res.Status == 100 {
		c.goAhead() // the client gets its own 100 when its body is read
	} else if !res.Interim() || forward.CheckResponse(b, res) == nil {
		err = x.client.Response(b, res, add)
	}
	c.out.Discard(len(b))
	return err
}

// pass passes on what has come of the body.
func (c *Conn) pass(eof bool) conn.Next {
	x := c.x
	for !c.body.Done() {
		b := c.out.Buffered()
		if c.body.InTrailer() {
			all := localOf(x.loop)
			n, fields, err := c.body.Trailer(b, all.tail, &c.parsed, &c.terms.Head)
			if err != nil {
				c.fail(origin.Malformed(err), nil)
				return conn.Reset
			}
			if n > 0 {
				all.tail = fields
				return c.finish(b[:n], fields)
			}
		} else if len(b) > 0 {
			data, used, err := c.body.Next(b)
			if len(data) > 0 {
				if err := x.client.Body(data); err != nil || c.x == nil {
					return c.clientGone()
				}
			}
			if err != nil {
				c.fail(reason.BadFraming, nil)
				return conn.Reset
			}
			if c.out.Discard(used); used > 0 {
				continue
			}
		}
		if !eof {
			c.limit()
			return c.flush()
		}
		if c.body.Closed() != nil {
			c.fail(reason.Truncated, nil)
			return conn.Close
		}
	}
	return c.finish(nil, nil)
}

// limit limits the time in which more of the body of a response must come. It may be made of one that the
// client has not sent yet: then that has limits of its own.
func (c *Conn) limit() {
	if c.x.up.open && !c.x.up.stopped {
		c.out.SetDeadline(0)
		return
	}
	c.out.SetDeadline(after(c.x.loop.Now(), c.terms.Stall))
}

// flush ends a Data that waits for more.
func (c *Conn) flush() conn.Next {
	full, err := c.x.client.Flush()
	switch {
	case err != nil || c.x == nil:
		return c.clientGone()
	case full:
		c.out.SetDeadline(0) // it is the client that is waited for
		c.x.fills()
		return conn.Await
	}
	return conn.More
}

// finish ends a response that is whole.
func (c *Conn) finish(tail []byte, fields []http1.Field) conn.Next {
	x := c.x
	c.x, x.conn = nil, nil
	keep := c.body.Reusable(c.out.Buffered()[len(tail):]) && !c.out.Out().Blocked() && !c.out.Unread() &&
		!x.up.open && !x.up.stopped
	x.end(reason.None)
	x.client.End(tail, fields)
	c.out.Discard(len(tail))
	if !keep {
		return conn.Reset
	}
	all, now := localOf(c.out.Loop()), c.out.Loop().Now()
	c.since = now
	if c.idle = all.keep(c); !c.idle {
		return conn.Close
	}
	c.out.SetDeadline(now + min(int64(c.server.age.Limit(now)), c.terms.IdleTime))
	return conn.More
}

// fail lets go of the exchange, whose try has failed. err may be nil.
func (c *Conn) fail(why reason.Code, err error) {
	x := c.x
	if x == nil {
		return
	}
	c.x, x.conn = nil, nil
	a := &retry.Attempt{Reason: origin.CutReason(why, x.empties()), Reused: c.reused}
	a.Awaited = x.up.open && !x.up.stopped && c.up && !c.asks && !c.out.Out().Blocked()
	switch {
	case c.inBody:
		a.Progress = retry.Passed
	case c.got:
		a.Progress = retry.Received
	case c.up:
		a.Progress = retry.Sent
	}
	idle := int64(0)
	if c.reused {
		idle = x.loop.Now() - c.since
	}
	x.failed(a, idle, err)
}

// clientGone lets go of the exchange, whose client has gone, unless Cancel has.
func (c *Conn) clientGone() conn.Next {
	if x := c.x; x != nil {
		c.x, x.conn = nil, nil
		x.end(reason.ClientGone)
	}
	return conn.Reset
}

// Expired implements conn.Session.
func (c *Conn) Expired() conn.Next {
	switch {
	case c.idle:
		localOf(c.out.Loop()).drop(c)
		c.idle = false
		return conn.Close
	case !c.up:
		c.fail(reason.DialTimeout, nil)
	case c.asks:
		c.goAhead()
		return conn.More
	case !c.inBody && c.out.Out().Blocked(): // the time begins when all was sent
		c.out.SetDeadline(after(c.out.Loop().Now(), c.terms.Response))
		return conn.More
	case c.inBody:
		c.fail(reason.StallTimeout, nil)
	default:
		c.fail(reason.ResponseTimeout, nil)
	}
	return conn.Reset
}

// Closed implements conn.Session.
func (c *Conn) Closed(bool) {
	err := c.out.LayerError()
	if c.idle {
		localOf(c.out.Loop()).drop(c)
		if c.idle = false; err != nil {
			now := c.out.Loop().Now()
			c.server.age.Closed(now, now-c.since)
		}
	}
	switch {
	case c.shaking != nil:
		c.fail(origin.TLSReason(c.shaking.Err), c.shaking.Err)
	case c.inBody:
		c.fail(reason.Truncated, err)
	case c.out.GaveUp():
		c.fail(reason.SendTimeout, err)
	case err != nil:
		c.fail(origin.EndReason(err, reason.Closed), err)
	default:
		c.fail(reason.Reset, nil)
	}
}

// Drain implements conn.Session.
func (c *Conn) Drain(int64) conn.Next {
	if c.x == nil {
		return conn.Close
	}
	return conn.More
}

// Since implements conn.Session: an idle connection gives way to a client.
func (c *Conn) Since(int64) int64 {
	if c.x != nil {
		return -1
	}
	return c.since
}
