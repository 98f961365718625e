package h2

import (
	"strconv"
	"strings"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/forward"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/outbound"
	"github.com/chert-http/chert/internal/pack"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/view"
)

// This file forwards requests on the loop: the response of a stream comes from another server,
// whose connection is on the same loop.

// forwarded is a request whose response another server sends. The loop's driver has what is not
// lasting's: Source's methods, which any goroutine may call, only post to it.
type forwarded struct {
	lasting
	x     outbound.Exchange
	loop  *loop.Loop
	edits *bridge.Edits
	via   string
	outer *forward.Outer
	// block is a head that has not been put into a frame, and body a small part of the body that
	// follows it; both are kept for what comes next, since one frame may have all of it.
	block *buf.Buf
	body  *buf.Buf
	tail  *buf.Buf // the trailers' block
	up    upload
	ends  bool // End was called: END_STREAM follows
	over  bool // nothing more is sent, or all of it was
}

var _ outbound.Client = (*forwarded)(nil)

// forwards reports whether requests of the Session may be forwarded.
func (s *Session) forwards() bool {
	_, ok := s.Link.(*conn.Conn)
	return ok && s.loops && s.Link.OnLoop()
}

// plan returns what the handler of r has planned, with the request that is to be sent, or nil if it
// has to be served otherwise.
func (r *request) plan() *outbound.Plan {
	p, ok := r.x.Plan().(*outbound.Plan)
	if !ok {
		return nil
	}
	head := buf.Get(len(r.fields.Bytes) + 64)
	defer head.Release()
	q := http1.Request{Minor: 1, ContentLength: -1}
	span := func(b []byte) http1.Span {
		start := len(head.B)
		head.B = append(head.B, b...)
		return http1.Span{Start: uint32(start), End: uint32(len(head.B))}
	}
	q.Method, q.Target = span(view.Bytes(r.x.Method())), span(r.x.Target())
	q.Host, q.HasHost = span(r.x.Host()), true
	if p.Open = r.x.Ahead(); p.Open {
		q.ContentLength, q.ExpectContinue = r.t.Length, r.t.Expect
		q.Chunked = q.ContentLength < 0
		p.Chunked, p.Asks = q.Chunked, q.ExpectContinue && q.ContentLength != 0
	}
	r.fields.Each(func(name, value []byte) bool {
		n := span(name)
		q.Fields = append(q.Fields, http1.Field{Name: n, Value: span(value), ID: http1.LookupField(name)})
		return true
	})
	p.Request.Version = "2"
	out := buf.Get(len(head.B) + 256)
	var err error
	if out.B, p.Sent, err = forward.AppendRequest(out.B, head.B, &q, &p.Request); err != nil {
		out.Release()
		outbound.Drop(p, reason.None)
		return nil
	}
	p.Out = out
	return p
}

// drop gives up what the handler has left.
func (r *request) drop() {
	outbound.Drop(r.x.Plan(), reason.ClientGone)
	exec.Call(r.x.Drop, r.st.s.LogEnd)
}

// forward carries out p, instead of a response of the handler's.
func (r *request) forward(p *outbound.Plan) {
	st, s := r.st, r.st.s
	f := &forwarded{loop: s.Link.(*conn.Conn).Loop(), via: p.Via, outer: p.Outer, edits: bridge.EditsOf(&r.x)}
	f.lasting = lasting{offers: offers{st: st}, source: f}
	st.pattern = r.x.Pattern()
	limit := r.x.WriteLimit(s.WriteTimeout)
	open := p.Open
	if open {
		f.up = upload{f: f, open: true, gather: p.Gather}
		f.up.readBy = stallBy(int64(s.ReadTimeout))
		st.awaits = r.t.Expect
	}
	f.Pass(&s.Client, r.x.TakeWatcher())
	r.free()
	s.mu.Lock()
	if !open {
		st.dropBodyLocked()
	}
	st.unkeepLocked()
	st.writeBy = stallBy(int64(limit))
	dead := st.closed() || s.over != nil
	if st.closed() {
		st.retireLocked()
	} else {
		st.become(stateSending) // or Closed would count it too, as one whose Run has not ended
	}
	if dead {
		s.mu.Unlock()
		outbound.Drop(p, reason.ClientGone)
		f.Over(&s.Client, 0, false)
		f.account()
		return
	}
	st.lasting = &f.lasting
	if open {
		st.upload = &f.up
	}
	s.mu.Unlock()
	if f.x.Prepare(f.loop, p, f); open {
		st.feedLater() // what has come of the body goes with the head
		return
	}
	f.x.Run()
}

func (f *forwarded) account() {
	st := f.st
	st.Time.Account(st.s.Link.Tally(), true, st.answer(), st.pattern)
}

// finish notes that nothing more is sent.
func (f *forwarded) finish() {
	if f.over = true; !f.ends { // complete has counted it otherwise
		f.account()
	}
	f.block = f.block.Drop()
	f.body, f.tail = f.body.Drop(), f.tail.Drop()
}

// Writable, Stop and Closed implement takeover.Source.
func (f *forwarded) Writable() { f.loop.Do(f.goOn) }
func (f *forwarded) Stop()     {} // the response comes first

func (f *forwarded) Closed() {
	if !f.whole { // close, which calls this, has had mu; nothing changes it after that
		f.loop.Do(f.cancel)
	}
}

// goOn is called on the loop when there may be room again.
func (f *forwarded) goOn() {
	if f.over {
		return
	}
	full, err := f.push()
	if err != nil && !f.ends {
		f.x.Cancel()
	}
	if f.gone(err) != nil || full { // another call follows if it is full
		return
	}
	if f.st.s.flushBeside(); !f.ends {
		f.x.Resume()
	}
}

// cancel is called on the loop when the stream or the connection has ended.
func (f *forwarded) cancel() {
	if f.over {
		return
	}
	if f.finish(); !f.ends {
		f.x.Cancel()
	}
}

func (f *forwarded) Response(head []byte, r *http1.Response, add []byte) error {
	if f.block != nil { // of an interim response
		if _, err := f.push(); err != nil {
			return f.gone(err)
		}
		f.block = f.block.Drop() // there was no room for it
	}
	o := forward.Response{Minor: 1, Trailers: true, NoUpgrade: true, Outer: f.outer}
	b := buf.Get(len(head) + len(add) + 256)
	b.B = http2.AppendStatus(b.B, r.Status)
	date := r.Interim()
	var err error
	if f.edits == nil && len(add) == 0 || r.Interim() {
		err = o.Fields(head, r, http1.FramingChunked, func(field *http1.Field, value []byte) {
			date = date || field.ID == http1.FieldDate
			b.B = http2.AppendField(b.B, view.String(field.Name.Bytes(head)), view.String(value))
		})
	} else {
		b.B, date, err = f.edited(b.B, head, r, &o, add)
	}
	if err != nil {
		b.Release()
		return f.gone(err)
	}
	if !date {
		b.B = dateField.Append(b.B, f.st.s.Link.Now())
	}
	if !r.Interim() {
		b.B = append(b.B, f.st.s.cfg.AltSvc.Block()...)
		f.st.status = int32(r.Status)
		f.SetStatus(r.Status)
	}
	// Go's client takes that of a 304, which is of a body that is not sent, for a mistake.
	if !r.Interim() && bridge.BodyAllowed(r.Status) && r.ContentLength >= 0 {
		b.B = http2.AppendKnown(b.B, pack.IDContentLength, strconv.FormatInt(r.ContentLength, 10))
	}
	if f.via != "" {
		b.B = http2.AppendField(b.B, "Via", "1."+string('0'+rune(r.Minor))+" "+f.via)
	}
	f.block = b
	return nil
}

// edited appends the fields of a response as middleware changes them, and those of add.
func (f *forwarded) edited(
	b, head []byte, r *http1.Response, o *forward.Response, add []byte,
) (_ []byte, date bool, err error) {
	var x wire.Exchange
	x.Reset(wire.Request{Method: f.x.Method()})
	has := map[string]bool{}
	err = o.Fields(head, r, http1.FramingChunked, func(field *http1.Field, value []byte) {
		name := http1.CanonicalName(field.Name.Bytes(head), field.ID)
		if has[name] = true; wire.MaySet(name) {
			x.AddHeader(name, string(value))
		}
	})
	for _, k := range f.edits.Kept() {
		if wire.IsList(k.Name) || !has[k.Name] {
			x.AddHeader(k.Name, k.Value)
		}
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(add), "\r\n"), "\r\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			x.AddHeader(name, value)
		}
	}
	if f.edits.Later() {
		f.edits.Change(&f.st.s.Client, &x, r.Status)
	}
	for field := range x.ResponseFields {
		date = date || field.Name == "Date"
		b = http2.AppendField(b, field.Name, field.Value)
	}
	return b, date, err
}

// smallBody is the most that is kept for the frame that ends the stream.
const smallBody = 4 << 10

func (f *forwarded) Body(p []byte) error {
	if f.body != nil || len(p) > smallBody {
		full, err := f.push()
		if err != nil {
			return f.gone(err)
		}
		if !full || f.block == nil { // there was room for the head
			s := f.st.s
			s.mu.Lock()
			err = f.offerBodyLocked(p, false)
			s.mu.Unlock()
			return f.gone(err)
		}
	}
	f.body = f.body.Room(len(p))
	f.body.B = append(f.body.B, p...)
	return nil
}

// bodyLimit is that of Offer: so much of a response waits that the client does not accept, and what
// is read from a server at a time.
const bodyLimit = 64 << 10

func (f *forwarded) offerBodyLocked(p []byte, end bool) error {
	_, err := f.offerLocked(p, nil, bodyLimit, end)
	if err == nil {
		f.Given(len(p))
	}
	return err
}

// gone notes err, after which the client gets nothing more. Unless it has ended the stream itself,
// as when the time for the response is over, that is reset.
func (f *forwarded) gone(err error) error {
	if err != nil && !f.over {
		f.finish()
		f.end(http2.InternalError)
		f.st.s.flushBeside()
	}
	return err
}

// push puts what there is into frames. full: there is no room for more.
func (f *forwarded) push() (full bool, err error) {
	s := f.st.s
	s.mu.Lock()
	if f.block != nil {
		s.makeRoom()
	}
	wait := f.block != nil && s.outFullLocked() // no window bounds heads
	if err = f.st.sendableLocked(); err == nil && !wait {
		full, err = f.pushLocked()
	}
	if s.mu.Unlock(); err == nil && wait {
		s.Link.Out().Follow(f)
	}
	return full || wait, err
}

// Sent implements conn.Follower: the connection has room for a head.
func (f *forwarded) Sent(int64) { f.loop.Do(f.goOn) }

func (f *forwarded) pushLocked() (full bool, err error) {
	st, s := f.st, f.st.s
	last := f.ends && f.tail == nil // END_STREAM follows the last of these
	out := last && (f.block != nil || len(f.body.Bytes()) > 0)
	if f.block != nil {
		s.putBlockLocked(st, f.block.B, last && len(f.body.Bytes()) == 0)
		f.block = f.block.Drop()
	}
	if b := f.body; b != nil {
		f.body = nil
		defer b.Release()
		if err := f.offerBodyLocked(b.B, last); err != nil {
			return false, err
		}
	}
	if !f.ends {
		return f.owed, nil
	}
	tail := f.tail
	f.tail, f.ending = nil, true
	f.finish()
	st.endLocked(tail, out)
	s.settleSoonLocked()
	return false, nil
}

func (f *forwarded) Flush() (full bool, err error) {
	if full, err = f.push(); err != nil {
		return false, f.gone(err)
	}
	f.st.s.flushBeside()
	return full, nil
}

func (f *forwarded) End(b []byte, fields []http1.Field) {
	for i := range fields {
		if name := fields[i].Name.Bytes(b); forward.IsTrailer(name) {
			if f.tail == nil {
				f.tail = buf.Get(len(b) + 64)
			}
			f.tail.B = http2.AppendField(f.tail.B, view.String(name), view.String(fields[i].Value.Bytes(b)))
		}
	}
	f.complete()
}

// complete ends a response all of which has come.
func (f *forwarded) complete() {
	f.ends = true
	f.up.leave()
	f.account()
	if _, err := f.push(); f.gone(err) == nil && !f.ending {
		f.st.s.flushBeside() // otherwise settle flushes, with what else has ended in this turn of the loop
	}
}

func (f *forwarded) Fail(reason.Code) {
	if f.st.status != 0 {
		// RFC 9113 section 8.1: only a reset tells the client that the response is incomplete.
		f.push()
		f.gone(errAborted)
		return
	}
	a := f.edits.Instead(&f.st.s.Client, f.x.Method(), f.x.Route().Instead())
	f.block.Drop()
	f.block = buf.Get(256)
	f.block.B = f.st.s.appendAnswer(f.block.B, &a)
	f.st.status = int32(a.Status)
	if f.SetStatus(a.Status); len(a.Body) > 0 {
		f.body = buf.Get(len(a.Body))
		f.body.B = append(f.body.B, a.Body...)
	}
	f.complete()
}
