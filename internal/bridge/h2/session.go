package h2

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/takeover"
)

// Session speaks HTTP/2 on one connection. Its fields are the owner's, but for those
// after mu.
type Session struct {
	bridge.Client
	cfg *Config // immutable
	dec http2.Decoder
	// block is a header block of which more is to come, cont whose it is.
	block []byte
	cont  continuation
	// lastID is the newest stream that the client has begun, closed the streams that
	// have ended last, reset those that we have reset last: as many as may be open, since
	// frames of each may be on their way.
	lastID            uint32
	closed            [16]uint32
	reset             []uint32
	closedAt, resetAt int
	resets            budget
	useless           budget
	memo              place.Memo
	peerSlot          peerSlot // for direct handlers
	peer              http2.Settings
	begun             bool // the preface has come
	settled           bool // and SETTINGS after it
	acked             bool // and it has acknowledged ours
	loops             bool // the Link is on a loop
	leaving           bool // the client has sent GOAWAY
	high              bool // the answer of a handler here has left no room in out
	work              int  // that frames and answers have made since read looked, besides their own
	active            bool // as ConnState has been told
	// deferred are requests whose handlers are likely to be quick, once their bodies
	// have come.
	deferred []*stream
	drain    drain
	// Times of sys.Nanotime: since when no request has been under way, when a frame
	// has come, and by when what is begun must have come; 0 for none.
	since, heard, headBy int64
	pinged               int64 // when, if no answer has come
	stalledAt            int64 // since when the answers in pending have had no window

	heads     atomic.Int32 // streams that wait for room for a header block; see stream.spare
	finishing atomic.Int32 // Runs that have run beside the loop, and wait for their Done

	// here is the stream whose handler runs on the loop, for Late.
	here atomic.Pointer[stream]
	// budget is what its WebSockets keep together.
	budget takeover.Budget
	// fed are tunnels for which something has come. feeding: feedAll was posted.
	fed     []*tunnel
	feeding bool

	mu         sync.Mutex
	streams    table   // that are not closed, or whose handlers run
	fields     int     // of all streams, as SETTINGS_MAX_HEADER_LIST_SIZE counts
	spare      *stream // for the next request, which saves most of them the pool
	sendWindow http2.Window
	inflow     http2.Inflow
	growth     growth
	out        *buf.Buf // frames that are ready; nil if there are none
	// tableGone: the client has made HPACK's table smaller. tableDue: it has not been
	// told that ours is gone; see http2.NoTable.
	tableGone, tableDue bool
	// inData: the owner is at it, and sends what is ready in the end. sending: a
	// goroutine is in Link.Queue. full: the Link has no room; writables tells when it
	// had.
	inData, sending, full bool
	writables             uint32
	useful                int32           // DATA frames worth something that were sent, and not counted by spendUseless
	order                 order           // of what is sent
	sentAll               int64           // DATA and header blocks of all streams
	wanting               []*stream       // that goroutines wait for, to send
	starved               bool            // pump had no room, or the connection was to end, while another goroutine was in Link.Queue
	settling              bool            // settle was posted
	followers             []conn.Follower // of answers whose end is in out
	freed                 []func()        // to be called by the owner without mu
	pending               []*stream       // whose handlers have returned, with more to send
	lingering             []*stream       // whose answers have been sent, the oldest first; see linger
	over                  error           // nothing is sent any more
	closing               bool            // nor read: GOAWAY with an error was
	gone                  bool            // Closed was called: nothing must be kept
	tunnelBy              int64           // when the next of the tunnels expires, or earlier; 0 for never
}

// continuation is a header block under way.
type continuation struct {
	h      http2.Header // of the HEADERS frame; zero if there is none
	frames int
	err    error // of the HEADERS frame
}

var (
	errPreface    = &http2.ConnError{Code: http2.ProtocolError, Reason: "no preface"}
	errNoSettings = &http2.ConnError{Code: http2.ProtocolError, Reason: "the first frame is not SETTINGS"}
	errClosed     = errors.New("http2: the connection has ended")
)

// Data implements conn.Session.
func (s *Session) Data(eof bool) conn.Next {
	s.loops = s.loops || s.Link.OnLoop()
	s.mu.Lock()
	s.inData = true
	s.mu.Unlock()
	next := s.read(eof)
	if next == conn.Lost || !s.afterData() {
		return conn.Lost
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
			if len(b) < len(http2.Preface) && bytes.HasPrefix([]byte(http2.Preface), b) {
				break
			}
			if !bytes.HasPrefix(b, []byte(http2.Preface)) {
				s.fail(errPreface)
				break
			}
			s.begun = true
			s.Link.Discard(len(http2.Preface))
			continue
		}
		if len(b) < http2.HeaderLen {
			break
		}
		h := http2.ParseHeader(b)
		if err := s.checkFrame(h); err != nil {
			s.fail(err)
			break
		}
		n := http2.HeaderLen + int(h.Length)
		if len(b) < n {
			break
		}
		st, err := s.frame(h, b[http2.HeaderLen:n])
		s.Link.Discard(n)
		if err != nil {
			s.refuse(h.Stream, err)
		}
		if st != nil {
			if s.work += runWork; !s.begin(st) {
				return conn.Lost
			}
		}
		if (frames%16 == 0 || s.high) && s.choked() {
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

// checkFrame judges a frame by its header and by what has come before it.
func (s *Session) checkFrame(h http2.Header) error {
	if err := h.Check(s.cfg.FrameSize); err != nil {
		return err
	}
	if !s.settled && (h.Type != http2.FrameSettings || h.Has(http2.FlagAck)) {
		return errNoSettings
	}
	if open := s.cont.h.Stream; open != 0 && (h.Type != http2.FrameContinuation || h.Stream != open) {
		return errInterleaved
	}
	return nil
}

// afterData begins the requests that have waited for their bodies, and calls the
// sessions of tunnels. It reports whether the loop is still the caller's.
func (s *Session) afterData() (kept bool) {
	for _, st := range s.deferred {
		s.admit(st, false)
	}
	clear(s.deferred)
	s.deferred = s.deferred[:0]
	return s.feedAll()
}

// undefer takes st, which is about to begin or has been closed, out of deferred.
func (s *Session) undefer(st *stream) {
	i := slices.Index(s.deferred, st)
	s.deferred = slices.Delete(s.deferred, i, i+1)
}

// settle sends what is ready, and says what comes next. It is the owner's, outside of
// Data.
func (s *Session) settle(next conn.Next) conn.Next {
	next, idle := s.sum(next)
	if idle {
		s.SetState(http.StateIdle)
	}
	s.free()
	s.feedSoon()
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

// sum is settle without the server's hook. It reports whether the last request has
// ended.
func (s *Session) sum(wanted conn.Next) (next conn.Next, idle bool) {
	next = wanted
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inData = false
	s.pump()
	if s.finishing.Load() == 0 || next >= conn.Close {
		s.flush()
	}
	defer func() {
		if next >= conn.Close {
			s.sendLast()
		}
	}()
	switch {
	case next >= conn.Close:
	case s.closing:
		next = conn.Linger
	case s.over != nil:
		next = conn.Close
	case s.ended():
		if next = conn.Close; s.active || s.Link.Now()-s.since < int64(conn.LingerFor) {
			next = conn.Linger // the client may still open windows for the last response
		}
	case s.choke():
		next = conn.Pause
	}
	if idle = !s.busy() && s.active; idle {
		s.active = false
		s.here.Store(nil) // or the last request would be kept while the connection is idle
		s.since = s.Link.Now()
		s.giveSpare()
	}
	s.setDeadline()
	return next, idle
}

// choked reports whether more is to be sent than the client takes, so that no more is
// read.
func (s *Session) choked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.high = false
	return s.choke()
}

func (s *Session) choke() bool {
	if s.out == nil || len(s.out.B) < maxOut {
		return false
	}
	s.flush()
	return s.full && s.out != nil && len(s.out.B) >= maxOut
}

// Serve implements conn.Session; the Link is never handed to Go.
func (s *Session) Serve() conn.Next { return conn.More }

// Writable implements conn.Session.
func (s *Session) Writable() conn.Next {
	s.mu.Lock()
	s.full = false
	s.writables++
	s.wakeNext()
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
	if s.streams.len() > 0 {
		return -1
	}
	return min(s.since, now)
}

// Late implements conn.Session.
func (s *Session) Late(held time.Duration) {
	if st := s.here.Load(); st != nil {
		st.late(held)
	}
}
