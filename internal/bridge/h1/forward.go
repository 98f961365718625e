package h1

import (
	"net/http"
	"slices"
	"strings"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/forward"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/outbound"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/view"
)

// This file forwards requests on the loop, without a goroutine: a direct handler has made a
// Plan, and the response of another server comes later.

// forwarded is a request that waits for the response of another server: the conn.Session
// meanwhile, and the outbound.Client. The loop's driver calls all of its methods but Sent.
type forwarded struct {
	conn.Quiet // it is not idle, and the response comes before the connection's end
	bridge.Ending
	s        *Session
	link     *conn.Conn
	x        outbound.Exchange
	in       intake
	gather   int      // how much of the body has to come before the exchange begins
	out      *buf.Buf // what is to be sent to the client; nil for nothing
	edits    *bridge.Edits
	head     forward.Response // Close: the connection ends after the response
	pattern  string
	time     bridge.Timing
	deadline int64 // of the whole response, of sys.Nanotime; 0 for none
	readBy   int64 // of the whole request
	status   int32 // of the final response; 0 before it
	next     conn.Next
	chunked  bool
	crlf     bool // of a chunk whose data has been sent
	expects  bool // the client waits for a 100
	begun    bool // the exchange has
	inside   bool // what ends the exchange does not end the connection: the caller does what next says
	over     bool
}

var (
	_ conn.Speaker = (*forwarded)(nil)
	_ conn.Duplex  = (*forwarded)(nil)
)

// maxAhead is how much a client may send of its next requests while it waits.
const maxAhead = 16 << 10

// forward leaves r to p. Its bytes have not been discarded.
func (s *Session) forward(r *request, p *outbound.Plan) (next conn.Next, served bool) {
	out := buf.Get(len(r.raw) + 256)
	var err error
	if out.B, p.Sent, err = forward.AppendRequest(out.B, r.raw, &r.head, &p.Request); err != nil {
		out.Release()
		outbound.Drop(p, reason.None)
		return s.serveAfterAll(r), true // which answers it
	}
	out.B = append(out.B, r.raw[len(r.raw)-r.body:]...)
	p.Out, p.Open, p.Chunked, p.Asks = out, r.in.open, r.in.chunked, r.head.ExpectContinue && r.in.open
	s.release()
	f := &forwarded{s: s, link: s.Link.(*conn.Conn), time: r.time, pattern: r.x.Pattern(), in: r.in, gather: p.Gather,
		expects: p.Asks, head: forward.Response{
			Minor: 1, Close: !r.head.KeepAlive, Trailers: p.Sent.Trailers, Via: p.Via, Outer: p.Outer}}
	if s.ReadTimeout > 0 {
		f.readBy = s.Link.Now() - f.time.Head + int64(s.ReadTimeout)
	}
	f.x.Prepare(f.link.Loop(), p, f)
	f.edits = bridge.EditsOf(&r.x)
	if d := r.x.WriteLimit(s.WriteTimeout); d > 0 {
		f.deadline = conn.Earlier(f.time.HeadAt()+int64(d), 0)
	}
	s.Link.SetDeadline(f.deadline)
	f.Pass(&s.Client, r.x.TakeWatcher())
	s.Link.Discard(len(r.raw))
	r.free()
	s.Link.Switch(f)
	if !s.Link.OnLoop() {
		return conn.Requeue, false // Data begins on the loop
	}
	return f.begin(), false
}

// begin begins the exchange, and returns what is to happen on the client's connection.
func (f *forwarded) begin() conn.Next {
	b := f.link.Buffered()
	if len(b) < f.gather {
		return f.awaitBody()
	}
	f.begun, f.inside = true, true
	if f.gather > 0 {
		data, used, _, _ := f.in.next(b[:f.gather], &f.s.cfg.Head)
		f.x.Hold(data, !f.in.open)
		f.link.Discard(used)
	}
	f.x.Run()
	if f.inside = false; f.over {
		return f.next
	}
	return f.pump()
}

func (f *forwarded) Data(eof bool) conn.Next {
	switch {
	case eof: // the client has gone, as net/http understands it
		f.gone()
		return conn.Close
	case !f.begun:
		return f.begin()
	case !f.link.Out().Blocked():
		f.x.Resume() // after a Flush that was full
	}
	return f.pump()
}

// reading is what is to happen while the response has not ended.
func (f *forwarded) reading() conn.Next {
	if len(f.link.Buffered()) > maxAhead {
		return conn.Await
	}
	return conn.More
}

// gone ends the exchange because the client has gone.
func (f *forwarded) gone() {
	f.x.Cancel()
	f.ended(false)
}

// ended notes the end of the response.
func (f *forwarded) ended(complete bool) {
	f.over = true
	f.out = f.out.Drop()
	s := f.s
	f.time.Account(s.Link.Tally(), s.Link.OnLoop(), s.answer(int(f.status)), f.pattern)
	if waiting, lost := f.link.Out().Unsent(); waiting > 0 && complete {
		f.link.Out().Follow(f)
	} else {
		f.Over(&s.Client, lost, complete)
	}
}

func (f *forwarded) Sent(lost int64) { f.Over(&f.s.Client, lost, true) }

func (f *forwarded) Response(head []byte, r *http1.Response, add []byte) error {
	if !r.Interim() {
		f.answers(r.Status)
	}
	o := f.head
	if o.Add = add; !r.Interim() {
		o.Add = f.addKept(add, head, r)
		if alt := f.s.AltSvc.Line(); alt != nil {
			o.Add = slices.Concat(o.Add, alt)
		}
	}
	o.Date = view.Bytes(bridge.DateValue(f.link.Now()))
	b := f.buffer(len(head) + len(o.Add) + 512)
	out, framing, _ := forward.AppendResponse(b.B, head, r, &o) // its error is forward.CheckResponse's
	if !r.Interim() && f.edits.Later() {
		out = f.edit(out[:len(b.B)], out[len(b.B):])
	}
	b.B = out
	f.chunked = framing == http1.FramingChunked
	return nil
}

// answers notes the status of the final response, which begins, and whether the connection ends after it, as far as
// is known then.
func (f *forwarded) answers(status int) {
	f.status = int32(status)
	f.SetStatus(status)
	f.head.Close = f.s.closes(f.head.Close, f.expects, &f.in)
}

// edit appends head, of a response, as middleware changes it.
func (f *forwarded) edit(dst, head []byte) []byte {
	var x wire.Exchange
	x.Reset(wire.Request{Method: f.x.Method()})
	lines := strings.Split(strings.TrimSuffix(string(head), "\r\n\r\n"), "\r\n")
	dst = append(append(dst, lines[0]...), "\r\n"...)
	fixed := len(dst)
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		if wire.MaySet(name) {
			x.AddHeader(name, value)
		} else {
			dst = append(append(dst, line...), "\r\n"...)
		}
	}
	framing := string(dst[fixed:])
	dst = dst[:fixed]
	f.edits.Change(&f.s.Client, &x, int(f.status))
	for field := range x.ResponseFields {
		dst = http1.AppendField(dst, field.Name, field.Value)
	}
	return append(append(dst, framing...), "\r\n"...)
}

// addKept adds the fields that middleware has set: see wire.Exchange.Keep.
func (f *forwarded) addKept(add, head []byte, r *http1.Response) []byte {
	var all []byte
	for _, k := range f.edits.Kept() {
		has := func(f http1.Field) bool { return http1.FoldEqual(f.Name.Bytes(head), k.Name) }
		if wire.IsList(k.Name) || !slices.ContainsFunc(r.Fields, has) {
			all = http1.AppendField(all, k.Name, k.Value)
		}
	}
	if all == nil {
		return add
	}
	return append(all, add...)
}

// buffer returns out with room for n bytes more.
func (f *forwarded) buffer(n int) *buf.Buf {
	f.out = f.out.Room(n)
	return f.out
}

func (f *forwarded) Body(p []byte) error {
	f.Given(len(p))
	const frame = 2 + 16 + 2
	join := len(p) <= joinBody
	if !f.chunked && !join && f.out == nil {
		return f.send(nil, p)
	}
	b := f.buffer(frame + min(len(p), joinBody) + 2)
	if f.chunked {
		b.B = http1.AppendChunkSize(f.endChunk(b.B), len(p))
		if f.crlf = !join && cap(p)-len(p) < 2; !f.crlf && !join {
			// There is no room if the server's chunk has not ended: then more of it follows.
			p = append(p, "\r\n"...)
		}
	}
	if !join {
		return f.sendOut(p)
	}
	if b.B = append(b.B, p...); f.chunked {
		b.B = append(b.B, "\r\n"...)
	}
	return nil
}

// endChunk appends the end of the last chunk's data.
func (f *forwarded) endChunk(b []byte) []byte {
	if f.crlf {
		f.crlf = false
		b = append(b, "\r\n"...)
	}
	return b
}

// sendOut sends what is in out, and then p.
func (f *forwarded) sendOut(p []byte) error {
	err := f.send(f.out.Bytes(), p)
	f.out = f.out.Drop()
	return err
}

func (f *forwarded) send(a, b []byte) error {
	err := f.link.Send(&conn.Write{A: a, B: b, Deadline: f.deadline})
	if err != nil { // the client's connection has failed; the Exchange has ended
		f.ended(false)
		f.leave(conn.Reset)
	}
	return err
}

// leave does what is to happen next on the client's connection, whose response is over.
func (f *forwarded) leave(next conn.Next) {
	if f.inside {
		f.next = next
		return
	}
	f.link.Act(next)
}

func (f *forwarded) Flush() (full bool, err error) {
	if f.out != nil {
		if err := f.sendOut(nil); err != nil {
			return false, err
		}
	}
	if !f.link.Out().Blocked() {
		return false, nil
	}
	switch {
	case f.inside:
	case f.in.open:
		f.link.Sent()
	default:
		f.link.Act(f.reading())
	}
	return true, nil
}

func (f *forwarded) End(b []byte, fields []http1.Field) {
	if f.chunked {
		out := f.buffer(len(b) + 16)
		out.B = append(f.endChunk(out.B), "0\r\n"...)
		if f.head.Trailers {
			out.B = forward.AppendTrailer(out.B, b, fields)
		} else {
			out.B = append(out.B, "\r\n"...)
		}
	}
	if f.out != nil && f.sendOut(nil) != nil {
		return
	}
	f.finish()
}

// finish gives the connection back to HTTP/1 after a response.
func (f *forwarded) finish() {
	f.ended(true)
	s := f.s
	if f.in.open {
		next := conn.Linger
		if !f.head.Close {
			next = s.skip(f.in)
		}
		f.leave(next)
		return
	}
	s.Link.Switch(s)
	next := conn.Close
	if !f.head.Close {
		next = s.settle(conn.More)
	}
	switch {
	case next != conn.More:
	case len(s.Link.Buffered()) > 0:
		next = conn.Requeue
	default:
		next = s.Data(false) // there is nothing: it begins to wait
	}
	f.leave(next)
}

func (f *forwarded) Fail(reason.Code) {
	if f.status != 0 {
		// Only the end of the connection tells the client that the response is incomplete.
		if f.out != nil {
			f.link.Send(&conn.Write{A: f.out.B, Deadline: f.deadline})
		}
		f.ended(false)
		f.leave(conn.Close)
		return
	}
	a := f.edits.Instead(&f.s.Client, f.x.Method(), f.x.Route().Instead())
	f.answers(a.Status)
	f.Given(len(a.Body))
	out := f.buffer(1024 + len(a.Body))
	out.B = append(f.s.appendAnswer(out.B, &a, f.link.Now(), f.head.Close), a.Body...)
	if f.sendOut(nil) == nil {
		f.finish()
	}
}

// Expired implements conn.Session: the client has not sent its body, or the whole response has taken too long.
func (f *forwarded) Expired() conn.Next {
	if f.in.open && (f.deadline == 0 || f.link.Now() < f.deadline) {
		f.s.Link.Tally().Late(true, tally.LateRead)
		return f.spoil(http.StatusRequestTimeout, "request body not received in time")
	}
	f.s.Link.Tally().Late(true, tally.LateWrite)
	f.gone()
	return conn.Reset
}

func (f *forwarded) Closed(bool) {
	if !f.over {
		f.gone()
	}
	f.s.SetState(http.StateClosed)
}

func (f *forwarded) Speaks() string { return "HTTP/1" }
