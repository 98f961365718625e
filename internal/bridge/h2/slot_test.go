package h2

import (
	"testing"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/tally"
)

// postLink keeps what is posted, as the Link of a connection that has ended before it is delivered.
type postLink struct {
	conn.Link
	posted []func() conn.Next
	tally  tally.Shard
}

func (l *postLink) Tally() *tally.Shard { return &l.tally }

func (l *postLink) Post(f func() conn.Next) { l.posted = append(l.posted, f) }

type other struct{ acquired bool }

func (o *other) Acquired() { o.acquired = true }

// A slot that was given to a stream which is reset before it learns of that is free again, also if the
// connection ends before the stream would learn of it.
func TestSlotOfResetStream(t *testing.T) {
	t.Parallel()
	l := new(postLink)
	s := new(Session)
	s.Config = &bridge.Config{Slots: loop.NewSemaphore(1, 1)}
	s.cfg, s.Link = &Config{MaxStreams: 10}, l
	st := &stream{s: s, id: 1, exchange: new(exchange)}
	s.streams = append(s.streams, st)
	if s.Slots.Acquire(new(other)) != loop.Admitted || st.acquire() || st.state != stateQueued {
		t.Fatal("the stream does not wait")
	}
	s.Slots.Release()
	if len(l.posted) != 1 {
		t.Fatal("the stream was given no slot")
	}
	s.mu.Lock()
	st.closeLocked(new(resetError))
	s.mu.Unlock()
	s.free()
	if s.Slots.Acquire(new(other)) != loop.Admitted {
		t.Error("the slot is lost")
	}
	if st.state != stateClosed || len(s.streams) != 0 {
		t.Errorf("the stream is %v", st.state)
	}
	s.Slots.Release()
}
