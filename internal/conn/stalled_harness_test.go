//go:build linux || darwin

package conn

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// holder is the Holder of an answer. It is released once.
type holder struct {
	t        testing.TB
	check    func() error // when not nil
	checks   atomic.Int32
	releases atomic.Int32
	sent     func() // when not nil; called by Release
}

func (h *holder) Check() error {
	h.checks.Add(1)
	if h.releases.Load() > 0 {
		h.t.Error("Check after Release")
	}
	if h.check != nil {
		return h.check()
	}
	return nil
}

func (h *holder) Release() {
	if h.releases.Add(1) > 1 {
		h.t.Error("released twice")
	}
	if h.sent != nil {
		h.sent()
	}
}

// stalling is a fake whose answers may stall. A line "bytes N" is answered with
// N bytes, "file N" with N bytes of a file, "full" with as many as the socket
// takes and "end N" as "bytes N" with the end after it, other lines by last.
type stalling struct {
	*fake
	file     *os.File
	deadline int64        // of the next answer, for Write.Deadline
	filled   atomic.Int64 // how many bytes the answer to "full" had
	check    atomic.Pointer[func() error]

	mu      sync.Mutex
	holders []*holder
}

const stalledSize = 8 << 20

// stalledBytes are what the answers begin with, and the file.
var stalledBytes = bytes.Repeat([]byte("0123456789abcdef, 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f\n-"), stalledSize/67+1)[:stalledSize]

func newStalling(t testing.TB) *stalling {
	s := &stalling{fake: &fake{quick: true}, file: servertest.File(t, stalledBytes)}
	s.fed = func(f *fake, line string) {
		if f.unsent() {
			t.Errorf("%q is fed before the answer to the last is out", line)
		}
	}
	s.serve = func(f *fake, line string) Next {
		n := int64(0)
		what, number, _ := strings.Cut(line, " ")
		fmt.Sscan(number, &n)
		switch what {
		case "bytes":
			return s.send(Write{A: stalledBytes[:n/2], B: stalledBytes[n/2 : n]}, More)
		case "end":
			return s.send(Write{A: stalledBytes[:n]}, Close)
		case "file":
			return s.send(Write{A: []byte("a file: "), File: s.file, Len: n}, More)
		case "full":
			// Past the queue, which is empty: so the answer to the next line is
			// held when the socket is full.
			for {
				n, e := sys.Write(int(f.fd), stalledBytes[:64<<10])
				s.filled.Add(int64(n))
				if e != 0 {
					return More
				}
			}
		}
		return last(f, line)
	}
	return s
}

// unsent reports whether the queue has what waited for the peer.
func (f *fake) unsent() bool {
	q := f.queue.Load()
	if q == nil {
		return false
	}
	return q.Blocked() && q.Waits()
}

// send sends w with a holder.
func (s *stalling) send(w Write, next Next) Next {
	h := &holder{t: s.t, check: func() error {
		if check := s.check.Load(); check != nil {
			return (*check)()
		}
		return nil
	}}
	s.mu.Lock()
	s.holders = append(s.holders, h)
	s.mu.Unlock()
	w.Holder, w.Deadline = h, s.deadline
	w.Cork = len(s.Buffered()) > len(s.raw)
	if err := s.Send(&w); err != nil {
		return failed(err)
	}
	return next
}

// released checks that each holder has been released, once.
func (s *stalling) released() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, h := range s.holders {
		servertest.Eventually(s.t, "the holder is released", func() bool { return h.releases.Load() > 0 })
		if n := h.releases.Load(); n != 1 {
			s.t.Errorf("answer %d was released %d times", i, n)
		}
	}
}

// checks is how often Check was called for all answers.
func (s *stalling) checks() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.holders {
		n += int(h.checks.Load())
	}
	return n
}

// failed is how a connection ends that would not take its answer.
func failed(err error) Next {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return Reset
	}
	return Close
}

// wantAnswer reads the answer to a line.
func wantAnswer(c *client, line string) {
	n := 0
	what, number, _ := strings.Cut(line, " ")
	fmt.Sscan(number, &n)
	switch what {
	case "bytes", "end":
		c.Want(string(stalledBytes[:n]))
	case "file":
		c.Want("a file: " + string(stalledBytes[:n]))
	default:
		c.Want(line + "\n")
	}
}

// stuck waits until the loop has f, which waits for its client.
func (r *rig) stuck(f *fake) {
	r.t.Helper()
	servertest.Eventually(r.t, "the answer has stalled", func() (ok bool) {
		r.on(func() { ok = f.isStuck() })
		return ok
	})
}

// isStuck is for the loop.
func (f *fake) isStuck() bool {
	if f.state.Load()&(owned|writable) != 0 || f.ready&poll.Writable != 0 || f.phase != reading && f.phase != ending {
		return false
	}
	q := f.queue.Load()
	return q != nil && q.Waits() && q.Stalled()
}
