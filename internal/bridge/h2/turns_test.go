package h2

import (
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/pack"
)

// fedLink is a countingLink that has received in, and counts what is consumed of it.
type fedLink struct {
	countingLink
	in       []byte
	discards int
}

func (l *fedLink) Buffered() []byte { return l.in }
func (l *fedLink) Discard(n int)    { l.in, l.discards = l.in[n:], l.discards+1 }

// fed is a session whose turn is over whenever that is asked for, and that has received in.
func fed(in []byte) (*Session, *fedLink) {
	s, _, _ := quiet()
	l := &fedLink{in: in}
	l.shard.Init(nil)
	s.Client.Link, s.loops, s.begun, s.settled = l, true, true, true
	s.dec.Init()
	s.cfg.List = pack.Limits{Fields: 128, Bytes: 64 << 10}
	s.cfg.FrameSize, s.cfg.MaxStreams = DefaultFrameSize, DefaultMaxStreams
	section.InitBudgets(&s.resets, &s.useless, true, 0)
	return s, l
}

// requestsOf is n requests, each with the same header block.
func requestsOf(n int, block string) (b []byte) {
	for i := range uint32(n) {
		b = http2.AppendHeader(b, http2.FrameHeaders, http2.FlagEndHeaders|http2.FlagEndStream, 101+2*i, len(block))
		b = append(b, block...)
	}
	return b
}

// Frames that begin no handler have their turns as well: others are served between them. A
// flood of them ends the connection after a bounded number.
func TestUselessFramesTakeTurns(t *testing.T) {
	t.Parallel()
	entry := "\x40\x01a\x7f\xd9\x1c" + strings.Repeat("x", 3800)
	for _, tt := range []struct {
		name         string
		in           []byte
		turn, frames int // of one turn, and of all, at most
	}{
		// 4,000 fields without name and value: malformed, and more than 128.
		{"no names", requestsOf(1000, strings.Repeat("\x00\x00\x00", 4000)), 2, 1},
		{"no names, indexed", requestsOf(1000, strings.Repeat("\x40\x00\x00", 5000)), 2, 1},
		{"too large", requestsOf(1000, strings.Repeat("\x00\x01a\x00", 4000)), 2, section.IdleBudget/(4000*33/section.UselessSize) + 1},
		{"too large, indexed", requestsOf(1000, strings.Repeat("\x40\x01a\x00", 4000)), 2, section.IdleBudget/(4000*33/section.UselessSize) + 1},
		{"malformed", requestsOf(2000, strings.Repeat("\x00\x01a\x00", 100)), 32, section.ResetBudget + 1},
		{"malformed, of the table", append(requestsOf(1, entry), requestsOf(2000, "\x00\x01A\x00"+strings.Repeat("\xbe", 15))...), 4, section.ResetBudget + 2},
		{"PING", []byte(strings.Repeat("\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678", 20_000)), 32, section.IdleBudget + 1},
	} {
		s, l := fed(tt.in)
		for before := 0; ; before = l.discards {
			next := s.Data(false)
			if s.closing {
				l.discards-- // of all that was left
			}
			if n := l.discards - before; next != conn.Requeue && !s.closing || n > tt.turn {
				t.Errorf("%s: %d after %d frames in one turn, %d at most", tt.name, next, n, tt.turn)
				break
			}
			if s.closing {
				if l.discards > tt.frames {
					t.Errorf("%s: the connection ends after %d frames, %d at most", tt.name, l.discards, tt.frames)
				}
				break
			}
		}
	}
}

// Header blocks on a stream that the server has reset are charged by their size, whether
// or not its handler still runs.
func TestTrailersAfterResetAreCharged(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{false, true} {
		block := strings.Repeat("\x00\x01a\x7f\x81\x01"+strings.Repeat("b", 256), 40)
		in := requestsOf(2000, block)
		for i := 0; i < len(in); i += len(in) / 2000 {
			copy(in[i+5:], "\x00\x00\x00\x01")
		}
		s, l := fed(in)
		s.lastID = 1
		s.streams = nil
		if running {
			s.streams = append(s.streams, &stream{exchange: new(exchange), s: s, id: 1, state: stateReset})
		} else {
			s.rememberLocked(1, true)
		}
		for !s.closing && len(l.in) > 0 {
			s.Data(false)
		}
		if most := section.IdleBudget/(len(block)/section.UselessSize) + 1; !s.closing || l.discards > most+1 {
			t.Errorf("running: %v: closing: %v after %d blocks, %d at most", running, s.closing, l.discards, most)
		}
	}
}

// A request that is reset while it waits for its body is not kept, also if each call of Data
// loses the loop before it comes to those that wait.
func TestResetWhileDeferred(t *testing.T) {
	t.Parallel()
	s, l := fed(nil)
	for id := uint32(101); id < 121; id += 2 {
		st := s.open(id, &request{t: section.Target{Length: -1}}, false)
		st.become(stateDeferred)
		s.deferred = append(s.deferred, st)
		s.lastID = id
		l.in = http2.AppendRST(l.in, id, http2.Cancel)
	}
	if s.read(false); len(l.in) > 0 || len(s.deferred) > 0 {
		t.Errorf("%d requests that were reset are kept", len(s.deferred))
	}
}
