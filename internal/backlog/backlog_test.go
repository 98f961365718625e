package backlog

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

var (
	errAway    = errors.New("away")
	errRefused = errors.New("refused")
)

// store is one that is away until it is back.
type store struct {
	mu      sync.Mutex
	away    bool
	refuse  string
	written []string
	again   int // how often it was asked to find out
	dropped []error
	calls   []error // of Away
}

func (s *store) queue(limit int) *Queue {
	return &Queue{Max: limit, Temporary: func(err error) bool { return err == errAway },
		Away:    func(why error) { s.mu.Lock(); s.calls = append(s.calls, why); s.mu.Unlock() },
		Dropped: func(why error) { s.mu.Lock(); s.dropped = append(s.dropped, why); s.mu.Unlock() }}
}

func (s *store) write(text string) Write {
	return func(again bool) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if again {
			s.again++
		}
		switch {
		case s.away:
			return errAway
		case text == s.refuse:
			return errRefused
		}
		s.written = append(s.written, text)
		return nil
	}
}

func (s *store) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// What waits is written in order, and only the first may have been written before.
func TestOrder(t *testing.T) {
	t.Parallel()
	s := &store{away: true, refuse: "3"}
	q := s.queue(4)
	if queued, err := q.Follow(s.write("0")); queued || err != nil {
		t.Fatalf("%v, %v: nothing waits", queued, err)
	}
	if err := q.Begin(s.write("1"), errAway); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"2", "3", "4"} {
		if queued, err := q.Follow(s.write(text)); !queued || err != nil {
			t.Fatalf("%v, %v", queued, err)
		}
	}
	if _, err := q.Follow(s.write("5")); err != ErrFull || q.Len() != 4 {
		t.Errorf("%v with %d", err, q.Len())
	}
	s.set(false)
	servertest.Eventually(t, "the queue to be empty", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.calls) == 2
	})
	q.Close()
	if !slices.Equal(s.written, []string{"1", "2", "4"}) || !slices.Equal(s.dropped, []error{ErrFull, errRefused}) ||
		s.calls[0] != errAway || s.calls[1] != nil || s.again == 0 {
		t.Errorf("%+v", s)
	}
}

// Close drops what waits.
func TestClose(t *testing.T) {
	t.Parallel()
	s := &store{away: true}
	q := s.queue(10)
	if err := q.Begin(s.write("1"), errAway); err != nil {
		t.Fatal(err)
	}
	q.Follow(s.write("2"))
	q.Close()
	q.Close()
	if q.Len() != 0 || !slices.Equal(s.dropped, []error{ErrClosed, ErrClosed}) {
		t.Errorf("%d, %v", q.Len(), s.dropped)
	}
	if err := q.Begin(s.write("3"), errAway); err != ErrClosed {
		t.Errorf("got %v", err)
	}
}

// What is being written while Close drops the others counts by its own outcome.
func TestCloseWriting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		outcome error
		want    []error
	}{
		{nil, []error{ErrClosed}},
		{errAway, []error{ErrClosed, ErrClosed}},
		{errRefused, []error{ErrClosed, errRefused}},
	} {
		s := &store{}
		q := s.queue(10)
		writing, outcome := make(chan bool), make(chan error)
		begin := func(bool) error { writing <- true; return <-outcome }
		if err := q.Begin(begin, errAway); err != nil {
			t.Fatal(err)
		}
		servertest.Await(t, writing, "the write")
		q.Follow(s.write("2"))
		closed := make(chan bool)
		go func() { q.Close(); close(closed) }()
		servertest.Eventually(t, "the other to be dropped", func() bool { return q.Len() < 2 })
		outcome <- tt.outcome
		servertest.Await(t, closed, "Close")
		if q.Len() != 0 || len(s.written) != 0 || !slices.Equal(s.dropped, tt.want) {
			t.Errorf("%v: %d, %q, %v", tt.outcome, q.Len(), s.written, s.dropped)
		}
	}
}
