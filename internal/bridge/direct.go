package bridge

import (
	"io"
	"iter"
	"net/http"
	"net/url"
	"sync"
	"time"
	"unsafe"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
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
}

var parseds = sync.Pool{New: func() any { return new(parsed) }}

// keepOut is the largest buffer for an answer that is kept.
const keepOut = 16 << 10

// free gives p back. Nothing of the request may be looked at any more.
func (p *parsed) free() {
	p.raw, p.handler = nil, nil
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
		Body: p.raw[n:], RemoteAddr: c.t.Peer(), Fields: p,
	}
	if p.Get("Pragma") != nil || !splitTarget(&req) || !c.judgeDirect(req.Method, target) {
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

// All implements direct.Fields.
func (p *parsed) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for i := range p.head.Fields {
			f := &p.head.Fields[i]
			if f.ID != http1.FieldHost && !yield(f.Name.Bytes(p.raw), f.Value.Bytes(p.raw)) {
				return
			}
		}
	}
}

// serveDirect answers the request at hand.
func (c *Conn) serveDirect() (v conn.Verdict) {
	p := c.direct
	c.direct = nil
	v = conn.Close
	defer func() {
		// A panic, or runtime.Goexit. p may still be in use, so it is not kept.
		if p != nil {
			p.x.Drop()
			c.learnDirect(p)
			if e := recover(); e != nil && e != http.ErrAbortHandler {
				c.logPanic(e)
			}
		}
	}()
	if !p.handler.ServeDirect(&p.x) {
		x, err := c.plainAfterAll(p)
		p.free()
		p = nil
		if err != nil {
			return c.sayRefusal(err)
		}
		c.judge(x)
		c.cur.Store(x)
		if c.onLoop && !c.quick {
			return conn.Run // where it may block
		}
		return c.servePlain()
	}
	v = c.sendDirect(p)
	c.learnDirect(p)
	p.free()
	p = nil
	return c.settle(v)
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

// sendDirect writes the answer.
func (c *Conn) sendDirect(p *parsed) conn.Verdict {
	if d := c.cfg.WriteTimeout; d > 0 {
		c.t.SetWriteDeadline(time.Now().Add(d))
		defer c.t.SetWriteDeadline(time.Time{})
	}
	a := p.x.Finish()
	v := conn.More
	out := p.out[:0]
	if a.Ready != nil {
		out = append(out, a.Ready.Head(encodeAnswer)...)
	} else {
		out = appendAnswer(out, a.Status, a.Fields)
	}
	if !a.HasDate {
		out = appendDate(out, c.t.Now())
	}
	if !p.head.KeepAlive || !c.cfg.KeepAlives() {
		out = append(out, "Connection: close\r\n"...)
		v = conn.Close
	}
	out = append(out, "\r\n"...)
	var err error
	if len(a.Body) <= wireSize {
		out = append(out, a.Body...)
		a.Body = nil
	}
	switch {
	case a.File.File != nil:
		err = c.sendPart(out, &a.File)
	case len(a.Body) > 0:
		err = c.t.Write2(out, a.Body)
	default:
		err = c.t.WriteLast(out)
	}
	p.out = out
	if err != nil {
		return failure(err)
	}
	return v
}

// sendPart sends head and then a part of a file.
func (c *Conn) sendPart(head []byte, f *direct.File) error {
	if f.Done != nil {
		defer f.Done()
	}
	if err := c.t.Write2(head, nil); err != nil {
		return err
	}
	sent, ok, err := c.t.SendFile(f.File, f.Offset, f.Len)
	switch {
	case err != nil:
		return err
	case !ok:
		return c.copyPart(f)
	case sent < f.Len:
		return io.ErrUnexpectedEOF
	}
	return nil
}

// copyPart sends a part of a file through user space.
func (c *Conn) copyPart(f *direct.File) error {
	b := buf.Get(copySize)
	defer b.Release()
	for at, end := f.Offset, f.Offset+f.Len; at < end; {
		n, err := f.File.ReadAt(b.B[:min(end-at, copySize)], at)
		if n == 0 {
			return err
		}
		if err := c.t.Write2(b.B[:n], nil); err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
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
