//go:build linux || darwin

package loop

import (
	"math/rand/v2"
	"testing"

	"github.com/chert-http/chert/internal/poll"
)

// spareSock is a Spare that counts how often it is examined.
type spareSock struct {
	sock
	l       *Loop
	since   int64
	busy    bool
	comes   bool // bytes have come when it is to give way
	looked  *int
	gone    *[]int64
	removed bool
}

func (s *spareSock) Spare() (int64, bool) {
	*s.looked++
	return s.since, !s.busy
}

func (s *spareSock) GiveWay() bool {
	if s.comes {
		s.busy = true
		return false
	}
	*s.gone = append(*s.gone, s.since)
	s.l.Detach(s.handle)
	s.removed = true
	return true
}

// sparing is a loop with Spares whose descriptors are not watched.
type sparing struct {
	*Loop
	looked int
	gone   []int64
}

// unwatched is a poller for socks without descriptors.
type unwatched struct{ poll.Poller }

func (unwatched) Add(int, poll.Key) error { return nil }

func newSparing(t *testing.T) *sparing {
	l := turns(t)
	l.poller = unwatched{l.poller}
	return &sparing{Loop: l}
}

func (p *sparing) add(t *testing.T, since int64, busy bool) *spareSock {
	t.Helper()
	s := &spareSock{l: p.Loop, since: since, busy: busy, looked: &p.looked, gone: &p.gone}
	var err error
	if s.handle, err = p.Attach(s, -1); err != nil {
		t.Fatal(err)
	}
	return s
}

// Of those that are examined, the longest idle gives way first.
func TestLongestIdleGivesWay(t *testing.T) {
	t.Parallel()
	p := newSparing(t)
	for _, i := range rand.Perm(sample - 1) { // with slot 0
		p.add(t, int64(i)-30, i%3 == 0)
	}
	last := int64(-31)
	for range sample/3*2 - 1 {
		if !p.GiveWay() {
			t.Fatalf("none gave way after %d", len(p.gone))
		}
		since := p.gone[len(p.gone)-1]
		if since <= last || (since+30)%3 == 0 {
			t.Errorf("%d went after %d", since, last)
		}
		last = since
	}
}

// A search is bounded, whatever it finds; Socks that it does not reach at once
// are found in the end, and those whose request has arrived stay.
func TestLooksAreBounded(t *testing.T) {
	t.Parallel()
	p := newSparing(t)
	const busy = 5 * maxLooks
	for range busy {
		p.add(t, 0, true)
	}
	idle := p.add(t, 7, false)
	for tries := 1; ; tries++ {
		p.looked = 0
		ok := p.GiveWay()
		if p.looked > spareTries*maxLooks {
			t.Fatalf("%d were examined", p.looked)
		}
		if ok {
			break
		}
		if p.looked = 0; p.GiveWay() || p.looked > 0 {
			t.Fatal("looked again at once")
		}
		if tries > 2*busy/maxLooks {
			t.Fatal("the idle one was not found")
		}
		p.now += BarrenFor
	}
	if !idle.removed {
		t.Error("another gave way")
	}
	p = newSparing(t)
	for range 1000 {
		p.add(t, 9, false)
	}
	for range 100 {
		p.looked = 0
		if !p.GiveWay() || p.looked > sample {
			t.Fatalf("%d were examined", p.looked)
		}
	}
	p = newSparing(t)
	p.add(t, 1, false).comes = true
	p.add(t, 2, false)
	if !p.GiveWay() || p.gone[0] != 2 {
		t.Errorf("%v went", p.gone)
	}
}
