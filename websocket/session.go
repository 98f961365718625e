package websocket

import (
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/link"
	"github.com/chert-http/chert/internal/timer"
	"github.com/chert-http/chert/internal/wsframe"
)

// session is a Conn as a takeover.Session: it receives.
type session Conn

func (s *session) conn() *Conn { return (*Conn)(s) }

// batch is how many frames of one connection are processed on a loop before others
// have their turn. What inflates counts as several: see Conn.weight. slice bounds the
// time that they take, roughly: the clock is read after the first and every clockEvery
// frames.
const (
	batch      = 64
	slice      = 200 * time.Microsecond
	clockEvery = 8
)

func (s *session) Data(eof bool) link.Next {
	if !s.begun {
		s.begun, s.heard = true, s.link.Now()
		if peer := s.link.RemoteAddr(); peer != nil {
			s.spread = timer.SpreadOf(peer.String())
		}
		s.limit()
	}
	s.weight = 0
	s.mu.Lock()
	s.corked, s.serves = s.link.OnLoop(), true
	s.mu.Unlock()
	next := link.More
	if s.pending { // after Elsewhere
		s.pending = false
		next = s.proceed(false)
	}
	if next == link.More && !s.choked.Load() {
		next = s.read(eof)
	}
	return s.done(next)
}

// done ends Data, and returns what is to happen next.
func (s *session) done(next link.Next) link.Next {
	if next == link.Elsewhere {
		return next
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.corked, s.serves = false, s.alone
	if s.conn().flush(); next < link.Pause && s.choked.Load() {
		next = link.Pause
	}
	return next
}

// uncork sends what is gathered, and ends that.
func (s *session) uncork() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.corked = false
	s.conn().flush()
}

// Late implements takeover.Session: what was sent must not wait for the user code.
func (s *session) Late(time.Duration) { s.uncork() }

// read processes the frames that have arrived.
func (s *session) read(eof bool) link.Next {
	var began time.Time
	for n := 1; ; n++ {
		p, k, err := s.reader.Next(s.link.Buffered(), &s.h.limits)
		switch {
		case err != nil:
			return s.conn().failed(err.(*wsframe.Error))
		case k == 0 && eof:
			return link.Close
		case k == 0:
			return link.More
		case n == 1: // only now: Data is also called when the client has sent nothing
			s.heard = s.link.Now()
		}
		if s.closing {
			// Messages are not delivered any more; what was on its way may come.
			if s.surplus += int32(k); s.surplus > maxSurplus {
				s.link.Discard(k)
				return s.giveUp()
			}
		}
		if p.Op.Control() {
			done := s.control(p)
			if s.link.Discard(k); done {
				return link.Close
			}
		} else if next := s.piece(p, k); next != link.More {
			return next
		} else if s.choked.Load() {
			return link.Pause
		}
		full := n+int(s.weight) >= batch
		if !full && n != 1 && n%clockEvery != 0 || !s.link.OnLoop() || len(s.link.Buffered()) == 0 {
			continue
		}
		if full {
			return link.Requeue
		}
		if now := time.Now(); began.IsZero() {
			began = now
		} else if now.Sub(began) >= slice {
			return link.Requeue
		}
	}
}

// control processes a control frame, and reports whether the connection is to end.
func (s *session) control(p wsframe.Piece) (done bool) {
	c := s.conn()
	switch p.Op {
	case wsframe.Ping:
		s.mu.Lock()
		c.sendPong(p.Data)
		s.mu.Unlock()
	case wsframe.Close:
		code, reason, err := wsframe.ParseClose(p.Data)
		answer := "" // RFC 6455 section 5.5.1: typically the code is echoed
		if err != nil {
			e := err.(*wsframe.Error)
			code, reason, answer = e.Code, e.Reason, e.Reason
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		c.because(code, reason)
		c.sendClose(code, answer)
		return true // section 7.1.1: the server closes the connection first
	}
	return false
}

// piece processes a part of a message that ends after k Buffered bytes. If the
// message is complete, it is delivered.
func (s *session) piece(p wsframe.Piece, k int) link.Next {
	s.used, s.at, s.typ, s.packed = int32(k), int32(k-len(p.Data)), TypeBinary, p.Compressed
	if p.Op == wsframe.Text {
		s.typ = TypeText
	}
	if !p.Compressed && s.ignores() {
		return s.drop()
	}
	if !s.gather(p) {
		s.drop()
		return s.conn().failed(errUnfinished)
	}
	if !p.Last {
		s.link.Discard(k)
		return link.More
	}
	return s.proceed(s.link.OnLoop())
}

// elsewhere has Data continue on a goroutine.
func (s *session) elsewhere() link.Next {
	s.uncork()
	s.pending = true
	return link.Elsewhere
}

// proceed delivers a message that is complete: it calls OnMessage. After elsewhere it goes on where it has left off.
func (s *session) proceed(onLoop bool) link.Next {
	if s.packed {
		switch later, err := s.inflate(onLoop); {
		case later:
			return s.elsewhere()
		case err != nil:
			s.drop()
			return s.conn().failed(err)
		}
	}
	switch {
	case s.ignores(): // perhaps it was inflated for the window
		return s.drop()
	case onLoop && !s.link.Quick():
		return s.elsewhere()
	case s.alone:
		s.pending = true
		return link.Elsewhere
	case !s.link.OnLoop():
		s.uncork() // the code may take long
	}
	ok := s.link.Run()
	s.heard = s.link.Now() // the server has neither read nor sent a Ping meanwhile
	if s.drop(); !ok {
		return s.conn().failed(errInternal)
	}
	return link.More
}

// ignores reports whether messages are not delivered any more, or never.
func (s *session) ignores() bool {
	return s.closed.Load() || s.h.o.OnMessage == nil && !s.alone
}

// drop ends the use of the message that is delivered, or of a piece of one.
func (s *session) drop() link.Next {
	s.release()
	s.link.Discard(int(s.used))
	return link.More
}

func (s *session) Kind() string { return s.h.kind }

func (s *session) Run() {
	returned := false
	defer func() {
		if !returned {
			s.uncork() // what was sent before the panic, or the goroutine's end
		}
	}()
	s.h.o.OnMessage(s.conn(), s.typ, s.message())
	returned = true
}

// message is the payload that is delivered.
func (s *session) message() (p []byte) {
	if s.msg != nil {
		p = s.msg.B
	} else {
		p = s.link.Buffered()[s.at:s.used]
	}
	return p[:len(p):len(p)]
}

// gather adds p to the message, unless it is the whole message: that stays where it is.
// It reports false if the connection's streams keep too much already.
func (s *session) gather(p wsframe.Piece) (ok bool) {
	if p.First && p.Last {
		return true
	}
	if s.shares {
		if b := &s.rare.beside; p.Last {
			b.end() // OnMessage may take its time
		} else if !b.keep(len(p.Data), s.h.limits.Message) {
			return false
		}
	}
	// Room for what has come, not for what the header has announced.
	s.msg = s.msg.Room(len(p.Data))
	s.msg.B = append(s.msg.B, p.Data...)
	return true
}

// release gives up the message's buffer.
func (s *session) release() {
	s.msg = s.msg.Drop()
	if s.shares {
		s.rare.beside.end()
	}
}

func (s *session) Writable() link.Next {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.much = false
	if s.choked.Swap(false) {
		s.heard = s.link.Now() // the server has read nothing meanwhile
	}
	if s.rare != nil && s.rare.owes {
		s.conn().sendPong(s.rare.pong)
	}
	return link.More
}

// limit sets the deadline of the present wait.
func (s *session) limit() {
	by := s.pinged
	if !s.closing {
		by = 0
		if s.h.idle > 0 {
			by = s.heard + s.h.idle
		}
		if s.h.ping > 0 {
			by = conn.Earlier(by, max(s.heard, s.pinged)+s.spread.Of(s.h.ping))
		}
	}
	s.link.SetDeadline(by)
}

// Expired implements takeover.Session. What is received does not move the deadline, so
// it may come early.
func (s *session) Expired() link.Next {
	c, now := s.conn(), s.link.Now()
	switch {
	case s.closing && now >= s.pinged:
		return s.giveUp()
	case s.choked.Load():
		s.heard = now // the client may have sent something that is not read
	case s.closing:
	case s.h.idle > 0 && now-s.heard >= s.h.idle:
		// The client may have gone without a word, so no answer is expected.
		return c.failed(&wsframe.Error{Code: wsframe.CodePolicy, Reason: "idle for too long"})
	case s.h.ping > 0 && now-max(s.heard, s.pinged) >= s.spread.Of(s.h.ping):
		s.pinged = now
		s.mu.Lock()
		if !s.closed.Load() {
			c.frame(wsframe.Ping, false, nil, s.h.maxUnsent)
		}
		s.mu.Unlock()
	}
	s.limit()
	return link.More
}

// giveUp ends a connection whose client does not answer a Close frame. If the client does not
// accept what is queued either, that is dropped: there is no further wait for it.
func (s *session) giveUp() link.Next {
	var sent atomic.Bool
	s.link.Follow(func() { sent.Store(true) }) // at once if nothing is queued
	if sent.Load() {
		return link.Close
	}
	return link.Reset
}

// awaitClose is posted after a Close frame was sent.
func (s *session) awaitClose() link.Next {
	if !s.closing {
		s.closing, s.pinged = true, s.link.Now()+int64(closeTimeout)
		s.limit()
	}
	return link.More
}

func (s *session) Drain(int64) link.Next {
	s.mu.Lock()
	s.conn().sendClose(wsframe.CodeGoingAway, "")
	s.conn().flush()
	s.mu.Unlock()
	return s.awaitClose()
}

// PeerGone implements takeover.Session. Calls that send notice it by themselves.
func (s *session) PeerGone(reset bool) {}

// Since implements takeover.Session: the connection is not idle in the sense of HTTP.
func (s *session) Since(int64) int64 { return -1 }

func (s *session) Closed(hijacked bool) {
	s.mu.Lock()
	s.closed.Store(true)
	s.ended = true
	s.out = s.out.Drop()
	s.conn().because(wsframe.CodeAbnormal, "")
	why, m := s.rare.why, s.rooms
	s.rooms = nil
	s.mu.Unlock()
	s.release()
	for ; m != nil; m = m.next {
		m.room.ended(s.conn())
	}
	s.h.remove(s.conn())
	if f := s.h.o.OnClose; f != nil {
		go exec.Call(func() { f(s.conn(), Code(why.Code), why.Reason) },
			func(e exec.End) { s.h.logEnd(s.link.RemoteAddr(), e) })
	}
}
