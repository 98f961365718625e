package h2

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/takeover"
	"github.com/chert-http/chert/internal/timer"
)

// Session speaks HTTP/2 on one connection. The reader, and the fields here, are the owner's; the
// sender is shared.
type Session struct {
	bridge.Client
	cfg *Config // immutable
	reader
	sender

	// inData: the owner is in Data, and flushes in the end.
	inData atomic.Bool
	// here is the stream whose handler runs on the loop, for Late.
	here      atomic.Pointer[stream]
	heads     atomic.Int32 // streams that wait for room for a header block; see stream.spare
	finishing atomic.Int32 // Runs that have run beside the loop, and wait for their Done
	shared    shared       // of the requests; unused in plain text
	// budget is what its WebSockets keep together.
	budget takeover.Budget

	loops  bool         // the Link is on a loop
	active bool         // as ConnState was last called
	spread timer.Spread // of the time without a request; zero for goroutines
	work   int          // that frames and answers have made since read looked, besides their own
	// crowded: the last answer of a handler that has ended has left no room in out.
	crowded bool
	memo    place.Memo
	// spareRequest is for the next header block in Data, which saves most of them the pool.
	spareRequest *request
	// deferred are requests whose handlers are likely to be quick, once their bodies
	// have come.
	deferred []*stream
	fed      []*stream // that were taken over or forwarded, for which something has come
	drain    drain
	// Times of sys.Nanotime; 0 for none: since when no request has been under way, and when a PING
	// was sent that was not answered.
	since, pinged int64
}

var (
	errPreface    = &http2.ConnError{Code: http2.ProtocolError, Reason: "no preface"}
	errNoSettings = &http2.ConnError{Code: http2.ProtocolError, Reason: "the first frame is not SETTINGS"}
	errClosed     = errors.New("http2: the connection has ended")
	errEnded      = errors.New("http2: the stream has ended")
)

// Data implements conn.Session.
func (s *Session) Data(eof bool) conn.Next {
	if !s.loops && s.Link.OnLoop() {
		s.loops, s.spread = true, timer.SpreadOf(s.Link.Peer().RemoteAddr)
	}
	s.inData.Store(true)
	next := s.read(eof)
	if next == conn.Lost || !s.afterData() {
		return conn.Lost
	}
	if r := s.spareRequest; r != nil {
		s.spareRequest = nil
		requests.Put(r)
	}
	return s.settle(next)
}

// workSize is how many bytes of a frame are as much work as another frame: most is in
// header blocks, of which a KiB may be hundreds of fields. madeSize is the same for what a
// few bytes may make: fields that they refer to, and answers.
const (
	workSize = 256
	madeSize = 4 << 10
	// runWork is how many frames a handler here is as much work as: it may take 100 us.
	runWork = 4
	// turnWork is how much work is done before the clock is read.
	turnWork = 16
)

// read handles the frames that have come.
func (s *Session) read(eof bool) conn.Next {
	began, work := int64(0), turnWork // the clock is read after the first frame, too
	s.work = 0
	for frames := 1; !s.closing; frames++ {
		b := s.Link.Buffered()
		if !s.begun {
			n, err := s.preface(b)
			if err != nil {
				s.fail(err)
			}
			if n == 0 {
				break
			}
			s.Link.Discard(n)
			s.SetState(http.StateActive) // as net/http: it is no new connection any more
			s.SetState(http.StateIdle)
			continue
		}
		h, n, err := s.next(b, s.cfg.FrameSize)
		if err != nil {
			s.fail(err)
		}
		if n == 0 {
			break
		}
		st, err := s.frame(h, b[http2.HeaderLen:n])
		s.Link.Discard(n)
		if err != nil {
			s.refuse(h.Stream, err)
		}
		if st != nil {
			if s.work += runWork; !s.admit(st, true) {
				return conn.Lost
			}
		}
		if (frames%16 == 0 || st != nil && s.crowded) && s.choked() {
			return conn.Pause
		}
		// Whether or not a handler has begun: what is refused costs time as well.
		if work += 1 + n/workSize + s.work; work >= turnWork && len(s.Link.Buffered()) >= http2.HeaderLen {
			if work = 0; s.spent(&began) {
				return conn.Requeue
			}
		}
		s.work = 0
	}
	if s.closing {
		s.Link.Discard(len(s.Link.Buffered()))
		return conn.Linger
	}
	if eof {
		return conn.Close
	}
	return conn.More
}

// spent reports whether Config.Slice has passed since the first call, which sets began, if
// others wait for this goroutine.
func (s *Session) spent(began *int64) bool {
	now := sys.Nanotime()
	if *began == 0 {
		*began = now
		return false
	}
	return now-*began >= s.cfg.Slice && s.Link.OnLoop()
}

// afterData begins the requests that have waited for their bodies, and passes on what has come
// for others. It reports whether the loop is still the caller's.
func (s *Session) afterData() (kept bool) {
	for _, st := range s.deferred {
		s.admit(st, false)
	}
	clear(s.deferred)
	s.deferred = s.deferred[:0]
	return s.feedAll()
}

// settle sends what is ready, and says what comes next. It is the owner's, outside of
// Data.
func (s *Session) settle(next conn.Next) conn.Next {
	s.inData.Store(false)
	s.mu.Lock()
	s.pass(&turn{sent: s.sentAll, gather: s.finishing.Load() > 0 && next < conn.Close})
	next, idle := s.sumLocked(next)
	freed := s.freed != nil
	if s.mu.Unlock(); next >= conn.Close {
		s.sendLast()
	}
	if idle {
		s.SetState(http.StateIdle)
	}
	if freed {
		s.free()
	}
	if len(s.fed) > 0 { // they have their turn after other connections
		s.settleSoon()
	}
	return next
}

// free calls what was left to the owner.
func (s *Session) free() {
	for {
		s.mu.Lock()
		all := s.freed
		s.freed = nil
		s.mu.Unlock()
		if all == nil {
			return
		}
		for _, f := range all {
			f()
		}
	}
}

// sumLocked decides what comes next, when what is ready has been sent. idle: the last request has
// ended.
func (s *Session) sumLocked(next conn.Next) (_ conn.Next, idle bool) {
	switch {
	case next >= conn.Close:
	case s.closing:
		next = conn.Linger
	case s.over != nil:
		next = conn.Close
	case s.endedLocked():
		if next = conn.Close; s.active || s.Link.Now()-s.since < int64(conn.LingerFor) {
			next = conn.Linger // the client may still open windows for the last response
		}
		if !s.drain.last { // the client is leaving; it learns of which streams nothing was done (RFC 9113 section 6.8)
			s.goAwayLocked(http2.NoError, "")
		}
	case s.full && s.outFullLocked():
		next = conn.Pause
	}
	if idle = !s.busyLocked() && s.active; idle {
		s.active = false
		s.here.Store(nil) // or the last request would be kept while the connection is idle
		s.since = s.Link.Now()
		if s.spare != nil {
			pooled.Put(s.spare)
			s.spare = nil
		}
		s.shared.state.Store(nil)
	}
	s.setDeadlineLocked()
	return next, idle
}

// choked reports whether more is to be sent than the client accepts, so that no more is
// read.
func (s *Session) choked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoom()
	return s.full && s.outFullLocked()
}

// sendLast passes what is ready to the Link before it is closed, also if that has no room. While
// a goroutine passes earlier frames, which the Link may refuse by then, or if it has refused some,
// that is GOAWAY alone: a client must not get DATA whose HEADERS are missing.
func (s *Session) sendLast() {
	s.mu.Lock()
	b, frames := s.out, s.out.Bytes()
	s.out = nil
	if s.sending || s.lost {
		frames = onlyGoAway(frames)
	}
	s.mu.Unlock()
	if len(frames) > 0 {
		s.Link.Send(&conn.Write{A: frames})
	}
	b.Drop()
}

// onlyGoAway returns the GOAWAY frames among frames, in the same array.
func onlyGoAway(frames []byte) []byte {
	kept := frames[:0]
	for len(frames) > 0 {
		h := http2.ParseHeader(frames)
		n := http2.HeaderLen + int(h.Length)
		if h.Type == http2.FrameGoAway {
			kept = append(kept, frames[:n]...)
		}
		frames = frames[n:]
	}
	return kept
}

// Writable implements conn.Session.
func (s *Session) Writable() conn.Next {
	s.mu.Lock()
	s.full, s.writable = false, true
	s.wakeNextLocked()
	s.mu.Unlock()
	if next := s.settle(conn.More); next >= conn.Close {
		return next
	}
	return conn.More
}

// Since implements conn.Session.
func (s *Session) Since(now int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) > 0 {
		return -1
	}
	return min(s.since, now)
}

// Late implements conn.Session.
func (s *Session) Late(held time.Duration) {
	switch st := s.here.Load(); {
	case st == nil:
	case st.tunnelled:
		st.tunnel.session.Late(held)
	case st.direct != nil:
		st.Time.Held(held)
		s.LateDirect(st.direct.x.Method(), st.direct.x.Target(), held)
	default:
		st.Late(held)
	}
}
