package h2

import (
	"testing"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/tally"
)

// deadLink is a Link whose connection has ended.
type deadLink struct{ conn.Link }

func (deadLink) Follow(f conn.Follower) { f.Sent(0) }
func (deadLink) Tally() *tally.Shard    { return new(tally.Shard) }
func (deadLink) OnLoop() bool           { return false }
func (deadLink) Now() int64             { return 1 }

type follower struct{ told []int64 }

func (f *follower) Sent(lost int64) { f.told = append(f.told, lost) }

func sessionOf(slots *loop.Semaphore) (*Session, *stream) {
	cfg := &bridge.Config{Slots: slots}
	s := &Session{cfg: &Config{Config: cfg}}
	s.Client.Config, s.Client.Link = cfg, deadLink{}
	st := &stream{s: s, id: 1, started: true}
	st.link = link{deadLink{}, st}
	st.cond.L = &s.mu
	s.streams = map[uint32]*stream{1: st}
	return s, st
}

// Who follows an answer is told of its end once, also if the connection has ended
// before the end of the answer's handler has been seen, or before it followed.
func TestFollowersOfAClosedConnection(t *testing.T) {
	t.Parallel()
	s, st := sessionOf(nil)
	before, after := new(follower), new(follower)
	st.keepRest([]byte("kept"), nil)
	s.pending = append(s.pending, st)
	st.link.Follow(before)
	s.Closed(false)
	st.link.Follow(after)
	for _, f := range []*follower{before, after} {
		if len(f.told) != 1 || f.told[0] == 0 {
			t.Errorf("told %d", f.told)
		}
	}
}

// A connection that is ended by another goroutine while a slot is being acquired gives
// back no slot that it has not got.
func TestEndWhileASlotIsAcquired(t *testing.T) {
	t.Parallel()
	slots := loop.NewSemaphore(1, 1)
	slots.Acquire(nil) // another's
	s, st := sessionOf(slots)
	st.slot = slotAsked
	s.PeerGone(true)
	if slots.Acquire(nil) != conn.Queued {
		t.Error("a slot was given back")
	}
}
