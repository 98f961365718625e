package h3

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// partStream has a part of a head, and then nothing until its deadline is in less than DrainNew.
type partStream struct {
	*memoryStream
	by chan time.Time
}

func (s *partStream) SetReadDeadline(t time.Time) error {
	s.by <- t
	return nil
}

func (s *partStream) Read(p []byte) (int, error) {
	if len(s.in) > 5 {
		n := copy(p, s.in[:5])
		s.in = nil
		return n, nil
	}
	for by := range s.by {
		if time.Until(by) < conn.DrainNew {
			break
		}
	}
	return 0, os.ErrDeadlineExceeded
}

func (c *inMemory) part(id uint64) *partStream {
	return &partStream{c.get(id), make(chan time.Time, 10)}
}

// A connection gives way when its heads have been incomplete for DrainNew, after those that are idle.
func TestHeadsGiveWay(t *testing.T) {
	t.Parallel()
	release := make(chan bool)
	c := served(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	s := c.session
	spare := func(want bool) {
		t.Helper()
		if since, ok := s.Spare(); ok != want || ok && since <= sys.Nanotime() {
			t.Errorf("it is spare: %v, since %d", ok, since)
		}
	}
	part := c.part(0)
	c.streams <- part
	servertest.Eventually(t, "it is open", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.streams) == 1
	})
	spare(false)
	s.mu.Lock()
	s.streams[0].awaited -= int64(conn.DrainNew)
	s.mu.Unlock()
	spare(true)
	whole := c.get(4)
	c.streams <- whole
	servertest.Eventually(t, "the handler runs", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.streams[4] != nil && s.streams[4].awaited == 0
	})
	spare(false)
	close(release)
	servertest.Await(t, whole.done, "the answer")
	servertest.Eventually(t, "it gives way", s.GiveWay)
	if n := servertest.Await(t, part.done, "its end"); n <= 0 {
		t.Error("no 408")
	}
	servertest.WaitDone(t, c.ctx, "the connection has ended")
}

// What comes in part while the connection ends has no more time than what had come before.
func TestHeadsOfEnding(t *testing.T) {
	t.Parallel()
	c := served(t, http.NotFoundHandler())
	c.session.mu.Lock()
	c.session.drain.begun = true
	c.session.mu.Unlock()
	part := c.part(0)
	c.streams <- part
	if n := servertest.Await(t, part.done, "its end"); n <= 0 {
		t.Error("no 408")
	}
}

// A connection that the server ends stays for as long as the transport sends, which may be the rest of the last answer,
// unless another is to have its place.
func TestLingersForSlowClients(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		end  func(*Session)
		want int64
	}{
		{"Drain", (*Session).Drain, 5},
		{"GiveWay", func(s *Session) { s.GiveWay() }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := served(t, http.NotFoundHandler())
			c.sending = 5
			str := c.get(0)
			c.streams <- str
			servertest.Await(t, str.done, "the answer")
			s := c.session
			servertest.Eventually(t, "it is idle", func() bool { return !s.Active() })
			s.mu.Lock()
			s.since -= int64(lingerFor)
			s.mu.Unlock()
			tt.end(s)
			servertest.WaitDone(t, c.ctx, "the connection has ended")
			if n := c.sent.Load(); n < tt.want || tt.want == 0 && n > 0 {
				t.Errorf("it has looked %d times", n)
			}
		})
	}
}
