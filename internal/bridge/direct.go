package bridge

import (
	"iter"
	"net/http"
	"net/url"
	"sync"
	"time"
	"unsafe"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/sys"
)

// This file is the direct way: a request that is answered from the buffer it
// was read into, and an answer that is written in one piece.

// parsed is a request head and what the direct way makes of it. It is taken
// when a head is parsed and goes back at once, or with the direct answer.
type parsed struct {
	head    http1.Request
	raw     []byte // head and body, the transport's; valid until Serve returns
	body    int    // how much of raw is body
	handler direct.Handler
	x       direct.Exchange
	out     []byte
	rest    rest
	all     iter.Seq2[[]byte, []byte] // each, as a value that is made once
}

var parseds = sync.Pool{New: func() any {
	p := new(parsed)
	p.all = p.each
	return p
}}

// clockAtZero is direct.Clock when sys.Nanotime was 0.
var clockAtZero = direct.ClockAt(sys.Epoch())

// keepOut is the largest buffer for an answer that is kept.
const keepOut = 16 << 10

// free gives p back. Nothing of the request may be looked at any more.
func (p *parsed) free() {
	p.raw, p.handler = nil, nil
	p.rest.drop()
	p.x.Reset(direct.Request{})
	if cap(p.out) > keepOut {
		p.out = nil
	}
	parseds.Put(p)
}

// takeDirect decides whether the request that begins b, with a head of n bytes,
// goes the direct way, and returns how long it is if so, 0 if not.
//
// That needs a body that has come whole, and a head that asks for nothing else
// than an answer: the rest is left to the plain way, and so is Pragma, of which
// buildHeader makes another field.
func (c *Conn) takeDirect(p *parsed, b []byte, n int) int {
	dh, ok := c.cfg.userHandler().(direct.Handler)
	h := &p.head
	if !ok || h.Form != http1.FormOrigin || h.Minor == 0 || h.Chunked || h.ExpectContinue || h.ExpectOther || h.Upgrade || h.Preface {
		return 0
	}
	body := max(h.ContentLength, 0)
	if body > direct.MaxBody || int64(len(b)-n) < body {
		return 0
	}
	p.body = int(body)
	p.raw = b[:n+p.body]
	target := h.Target.Bytes(b)
	req := direct.Request{
		Method: methodOf(h.Method.Bytes(b)), Target: target, Host: h.Host.Bytes(b),
		Body: p.raw[n:], RemoteAddr: c.t.Peer(), Peer: &c.peer, Fields: p,
	}
	if p.has(http1.FieldPragma) || !splitTarget(&req) || !c.judgeDirect(req.Method, target) {
		return 0
	}
	p.handler = dh
	p.x.Reset(req)
	c.direct = p
	return len(p.raw)
}

// splitTarget sets Path and RawQuery. It reports false for a target that
// net/url does not take, so that there is one place which refuses those.
func splitTarget(r *direct.Request) bool {
	t := r.Target
	for i, b := range t {
		if b == '?' {
			r.Path, r.RawQuery = t[:i], t[i+1:]
			return true
		}
		if !plainPath[b] {
			u, err := url.ParseRequestURI(string(t))
			if err != nil {
				return false
			}
			r.Path, r.RawQuery = []byte(u.Path), []byte(u.RawQuery)
			return true
		}
	}
	r.Path = t
	return true
}

func methodOf(b []byte) string {
	switch string(b) {
	case http.MethodGet:
		return http.MethodGet
	case http.MethodPost:
		return http.MethodPost
	case http.MethodHead:
		return http.MethodHead
	}
	return string(b)
}

func (p *parsed) has(id http1.FieldID) bool {
	for i := range p.head.Fields {
		if p.head.Fields[i].ID == id {
			return true
		}
	}
	return false
}

// Get implements direct.Fields.
func (p *parsed) Get(name string) []byte {
	id := http1.LookupField(bytesOf(name))
	for i := range p.head.Fields {
		f := &p.head.Fields[i]
		if f.ID != id || id == http1.FieldHost {
			continue
		}
		if id != http1.FieldUnknown || http1.FoldEqual(f.Name.Bytes(p.raw), name) {
			return f.Value.Bytes(p.raw)
		}
	}
	return nil
}

// Count is for direct.Count.
func (p *parsed) Count(name string) int {
	_, n := p.First(name)
	return n
}

// First is for direct.First.
func (p *parsed) First(name string) (value []byte, n int) {
	id := http1.LookupField(bytesOf(name))
	for i := range p.head.Fields {
		f := &p.head.Fields[i]
		if f.ID != id || id == http1.FieldHost || id == http1.FieldUnknown && !http1.FoldEqual(f.Name.Bytes(p.raw), name) {
			continue
		}
		if n == 0 {
			value = f.Value.Bytes(p.raw)
		}
		n++
	}
	return value, n
}

// All implements direct.Fields.
func (p *parsed) All() iter.Seq2[[]byte, []byte] { return p.all }

func (p *parsed) each(yield func(name, value []byte) bool) {
	for i := range p.head.Fields {
		f := &p.head.Fields[i]
		if f.ID != http1.FieldHost && !yield(f.Name.Bytes(p.raw), f.Value.Bytes(p.raw)) {
			return
		}
	}
}

// serveDirect answers the request at hand.
func (c *Conn) serveDirect() (v conn.Verdict) {
	p := c.direct
	c.direct = nil
	answered, learned, returned := false, false, false
	defer func() {
		// A panic, or runtime.Goexit. p may still be in use, so it is not kept.
		if returned {
			return
		}
		v = conn.Close
		if e := recover(); e != nil && e != http.ErrAbortHandler {
			c.logPanic(e)
		}
		if !learned && !answered {
			c.learnDirect(p)
		}
		if !answered {
			c.giveUp(p)
		}
	}()
	if c.onLoop {
		// The loop's, which is at hand: when it found the request, or the one
		// before it, readable.
		p.x.Time = clockAtZero + time.Duration(c.t.Now())
	}
	if !p.handler.ServeDirect(&p.x) {
		answered = true
		v = c.serveAfterAll(p)
		returned = true
		return v
	}
	// Of the handler, not of the sending: a disk that is slow must not make
	// its files go where each slow client costs a goroutine.
	c.learnDirect(p)
	learned = true
	c.beginDirect(p)
	v = c.sendRest(p)
	answered = true
	v = c.endDirect(p, v)
	returned = true
	return v
}

// serveAfterAll gives a request the plain way that ServeDirect has left.
func (c *Conn) serveAfterAll(p *parsed) conn.Verdict {
	route := p.x.Pattern
	x, err := c.plainAfterAll(p)
	p.free()
	if err != nil {
		return c.sayRefusal(err)
	}
	c.judge(x, route)
	c.cur.Store(x)
	if c.onLoop && !c.quick {
		return conn.Run // where it may block
	}
	return c.servePlain()
}

// resumeDirect goes on with an answer that had stalled.
func (c *Conn) resumeDirect() (v conn.Verdict) {
	p := c.direct
	c.direct = nil
	returned := false
	defer func() {
		if returned {
			return
		}
		// A panic in the file's Check or Done.
		v = conn.Close
		if e := recover(); e != nil && e != http.ErrAbortHandler {
			c.logPanic(e)
		}
		c.giveUp(p)
	}()
	v = c.endDirect(p, c.sendRest(p))
	returned = true
	return v
}

// endDirect ends the use of p, unless the answer has stalled.
func (c *Conn) endDirect(p *parsed, v conn.Verdict) conn.Verdict {
	if v == conn.Stalled {
		c.direct = p
		return v
	}
	if c.cfg.WriteTimeout > 0 {
		c.t.SetWriteDeadline(time.Time{})
	}
	p.free()
	return c.settle(v)
}

// giveUp ends the use of the file of an answer that will not be finished.
func (c *Conn) giveUp(p *parsed) {
	defer func() {
		if e := recover(); e != nil {
			c.logPanic(e)
		}
	}()
	p.x.Drop()
	p.rest.drop()
}

// learnDirect notes a direct handler that was late.
func (c *Conn) learnDirect(p *parsed) {
	if c.learning && c.t.Outcome() == conn.Overstayed {
		c.cfg.directLate.Store(true)
		c.cfg.Places.Late(p.x.Method, stringOf(p.x.Target))
	}
}

// plainAfterAll makes the request an ordinary one, whose body is still to be
// read.
func (c *Conn) plainAfterAll(p *parsed) (*exchange, error) {
	n := len(p.raw) - p.body
	x, err := c.newExchange(&p.head, p.raw[:n])
	if err == nil {
		c.t.Unread(p.raw[n:])
	}
	return x, err
}

// sayRefusal answers a request that has turned out to be none.
func (c *Conn) sayRefusal(err error) conn.Verdict {
	if c.t.WriteLast(refusal(err)) != nil {
		return conn.Close
	}
	return conn.Linger
}

// encodeAnswer is the status line and the fields as HTTP/1.1 writes them.
func encodeAnswer(status int, fields []direct.Field) []byte {
	return appendAnswer(nil, status, fields)
}

func appendAnswer(b []byte, status int, fields []direct.Field) []byte {
	b = http1.AppendStatusLine(b, 1, status)
	for i := range fields {
		b = http1.AppendField(b, fields[i].Name, fields[i].Value)
	}
	return b
}

// stringOf views b without a copy, for those who do not keep it.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf views s without a copy; what looks at it must not write.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
