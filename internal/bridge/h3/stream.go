package h3

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// exchange is what a handler may keep of a stream.
type exchange struct {
	bridge.Exchange
	values  [2]string // of the request's fields, if they are not more
	reqBody bridge.Body
}

// stream is one request and its answer: the bridge.Message of its exchange. Its fields are those
// of its goroutine, and of the handler's which have the response's or the body's lock, but for
// those that mu or Session.mu guards.
type stream struct {
	*exchange // nil for the fast path, and before
	s         *Session
	str       Stream
	id        uint64
	timing    bridge.Timing // until there is an exchange
	way       stats.Way     // of the fast path, and of answers without a handler

	// leads is when the leader began to serve the stream, if it does; see lead. waited: some
	// goroutine has waited for the client.
	leads   atomic.Int64
	handler atomic.Uint32 // unseen, overseen or lost
	waited  atomic.Bool
	memo    *place.Memo // the goroutine's
	request *request    // its fields, until the handler has been chosen
	read    part        // how much of it has been

	// Reading.
	frames   http3.Reader
	in       *buf.Buf // received, not consumed; nil if empty
	eof      bool     // the end of the stream has come
	trailed  bool     // the trailers have
	connect  bool     // the method is CONNECT: what follows is no content
	length   int64    // declared, -1 for none
	received int64    // of the body
	fields   int      // of the request and its trailers, in Session.fields; guarded by that mu
	early    bool     // it runs before the handshake's end
	whole    bool     // after hold: it has no body
	// What follows is guarded by Session.mu. updated: PRIORITY_UPDATE has come.
	updated bool
	awaited int64 // since when the request's fields are awaited, of sys.Nanotime; 0 if they have come

	// The answer.
	writing *section.Writing // nil before anything was written, and after it
	status  int32            // once its head is out
	frame   uint64           // what the next DATA frame has, if it is to have more than what begins it
	sent    int64            // of the body
	within  uint64           // what is still to be sent of the DATA frame that has begun
	partial atomic.Bool      // a write waits, or has failed: perhaps within a frame
	kept    int              // bytes that the transport has accepted without waiting
	ended   atomic.Bool      // its end is out
	aborted atomic.Bool      // instead

	next    conn.Next
	leave   bool // the handler has set "Connection: close"
	hasSlot bool // of Server.MaxHandlers
	turn    chan struct{}
	lasting *lasting // after Last; set with mu held
	tunnel  *tunnel  // after Share; set with mu held

	mu      sync.Mutex
	readBy  time.Time
	writeBy time.Time
	dropped bool             // the body is not wanted
	unwatch func() bool      // ends what WatchPeer has begun; nil if it has not
	shown   *bridge.Exchange // what Running shows, while the handler runs or waits for its slot
	quick   *directRequest   // of the fast path, while its handler runs or its answer is sent
	stage   string           // of quick
}

// part is how much of a request has been read.
type part uint8

const (
	partNothing part = iota
	partBytes        // something has come
	partHeader       // of the HEADERS frame
)

// Run implements conn.UserCode: it runs the handler.
func (st *stream) Run() { st.next = st.Serve() }

// late records that the handler has kept the leader.
func (st *stream) late(held time.Duration) {
	st.mu.Lock()
	x, d := st.shown, st.quick
	st.mu.Unlock()
	switch {
	case d != nil:
		d.late(held)
	case x != nil:
		x.Late(held)
	}
}

// Ended implements conn.UserCode.
func (st *stream) Ended(e exec.End) {
	if st.next = st.Cut(e); e.Exited() {
		st.next = conn.Close
	}
}

// finish goes on with what the handler has left.
func (st *stream) finish() {
	s := st.s
	st.unsee()
	// What answers a request that the client has cancelled does not concern the others.
	if st.leave && (st.ended.Load() || st.str.Context().Err() == nil) {
		s.startDrain()
	}
	switch {
	case st.tunnel != nil:
		st.yield()
		if st.tunnel.serve(); !st.aborted.Load() { // by the server
			st.settle()
		}
	case st.lasting != nil:
		st.Shed()
		st.unwatchPeer()
		st.mu.Lock()
		st.shown, st.unwatch = nil, nil // or they would keep the exchange
		st.mu.Unlock()
		if st.next != conn.Detached { // runtime.Goexit
			st.lasting.End(true)
		}
		st.dropInput()
		st.exchange = nil // the handler's alone now
		st.lasting.handed()
		return
	default:
		if st.status == 0 {
			st.Unsent()
		}
		st.Learn(st.waited.Load())
		st.Account(false)
		// Otherwise there was a panic, or the answer is not what its head promises.
		if !st.settle() {
			st.abort(&http3.StreamError{Code: http3.InternalError})
		}
	}
	st.finished()
}

// settle charges a request that has a handler and has ended before its answer has, because of the
// client, and pays for one that was answered, which it reports. The server has not aborted it.
func (st *stream) settle() (answered bool) {
	s := st.s
	if answered = st.ended.Load(); answered {
		s.mu.Lock()
		s.resets.Refund(1)
		s.mu.Unlock()
	} else if st.str.Context().Err() != nil {
		s.spendReset()
	}
	return answered
}

// finished is the end of the stream.
func (st *stream) finished() {
	st.dropInput() // RFC 9114 section 4.1: the rest of the request is not wanted
	st.s.close(st)
}

// dropInput gives up what comes of the request.
func (st *stream) dropInput() {
	if st.in != nil { // it is not written otherwise: a goroutine of the handler's may be late
		st.in = st.in.Drop()
	}
	if !st.eof {
		st.str.Stop(http3.NoError)
	}
}

// abort ends the stream early. An error of the client's is answered with its code.
func (st *stream) abort(e *http3.StreamError) {
	if st.aborted.Swap(true) {
		return
	}
	if e.Reason != "" {
		st.s.count("stream_", e.Code)
	}
	st.str.Stop(e.Code) // eof may belong to another goroutine
	if !st.ended.Load() {
		st.str.Reset(e.Code)
	}
}

// stop tells what has outlived the handler that the server stops.
func (st *stream) stop() {
	st.mu.Lock()
	l, t := st.lasting, st.tunnel
	st.mu.Unlock()
	if l != nil {
		l.from().Stop()
	}
	if t != nil {
		t.Drain()
	}
}

// answered is what the request counts as.
func (st *stream) answered() tally.ID {
	return tally.AnswerOf(tally.HTTP3, tally.ClassOf(int(st.status)), st.way)
}

// What follows is the stream as its exchange has it.

var (
	_ bridge.Sharer      = (*stream)(nil)
	_ bridge.BodyDropper = (*stream)(nil)
)

// Stream implements bridge.Sharer.
func (st *stream) Stream() bridge.Stream { return own{st} }

// Budget implements takeover.Budgeted.
func (st *stream) Budget() *takeover.Budget { return &st.s.budget }

// Release implements bridge.Message.
func (st *stream) Release() {
	if st.hasSlot {
		st.hasSlot = false
		st.s.Slots.Release()
	}
}

// own is a stream as a bridge.Stream. The methods of its tunnel are for the session that takes the
// stream over, from Share on.
type own struct{ st *stream }

// SetReadDeadline and SetWriteDeadline implement bridge.Stream.
func (o own) SetReadDeadline(t time.Time) {
	st := o.st
	st.mu.Lock()
	defer st.mu.Unlock()
	st.readBy = t
	st.str.SetReadDeadline(conn.Sooner(t, conn.After(st.s.Shared.Limits.ReadStall)))
}

func (o own) SetWriteDeadline(t time.Time) {
	st := o.st
	st.mu.Lock()
	defer st.mu.Unlock()
	st.writeBy = t
	st.str.SetWriteDeadline(conn.Sooner(t, conn.After(st.s.Shared.Limits.WriteStall)))
}

// WatchPeer implements bridge.Stream: the transport always reads.
func (o own) WatchPeer() (gone bool) {
	st := o.st
	ctx := st.str.Context()
	if ctx.Err() != nil {
		return true
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.unwatch == nil {
		x := &st.exchange.Exchange
		st.unwatch = context.AfterFunc(ctx, func() { x.Gone(true) })
	}
	return false
}

// unwatchPeer ends WatchPeer: the handler has returned, or the stream is about to end by the server.
func (st *stream) unwatchPeer() {
	st.mu.Lock()
	unwatch := st.unwatch
	st.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
}

// Unsent and Follow implement bridge.Stream: what was written is the transport's.
func (o own) Unsent() (waiting, lost int64) {
	if t := o.st.tunnel; t != nil {
		return t.Out().Unsent()
	}
	return 0, 0
}

func (o own) Follow(f conn.Follower) {
	if t := o.st.tunnel; t != nil {
		t.Out().Follow(f)
		return
	}
	f.Sent(0)
}
