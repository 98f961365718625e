//go:build linux || darwin

package conn

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestInlineStress with answers that stall among the others, slots, and a
// server that kills, drains and lets the time of some run out at random.
func TestStalledStress(t *testing.T) {
	t.Parallel()
	seed := time.Now().UnixNano()
	rounds := 2
	if testing.Short() {
		rounds = 1
	}
	for i := range rounds {
		stalledStressRound(t, seed+int64(i), i%2 == 1)
	}
}

// stalledStress is the owner's part of one connection.
type stalledStress struct {
	rnd *rand.Rand
	// file gets the answers one after another: what is on its way to the client
	// must stay as it is.
	file *os.File
	end  int64
	ends bool // its handlers may end the connection
	held atomic.Int32
}

func stalledStressRound(t *testing.T, seed int64, slots bool) {
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	rnd := rand.New(rand.NewSource(seed))
	var three *loop.Semaphore
	if slots {
		three = loop.NewSemaphore(3, 1000)
	}
	r := newRig(t, Limits{})
	const n, lines = 20, 100
	var fakes []*fake
	var all sync.WaitGroup
	var checked, stalls atomic.Int64
	dir := t.TempDir()
	for i := range n {
		file, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		s := &stalledStress{rnd: rand.New(rand.NewSource(rnd.Int63())), file: file, ends: rnd.Intn(2) == 0}
		f := &fake{whole: rnd.Intn(2) == 0, slots: three}
		quick := map[string]bool{} // Feed and Quick must agree
		f.fed = func(f *fake, line string) {
			if f.unsent() {
				t.Errorf("%q is fed before the answer to the last is out", line)
			}
			clear(quick)
			quick[line] = s.rnd.Intn(12) > 0
		}
		f.quickly = func(line string) bool { return quick[line] }
		what, at := []Command{Kill, Drain, expire}[rnd.Intn(3)], int32(rnd.Intn(lines))
		f.serve = func(f *fake, line string) Next {
			if s.ends && f.runs.Load() == at {
				endSoon(r, f, what)
			}
			v := s.serve(f, line)
			if f.unsent() {
				stalls.Add(1)
			}
			return v
		}
		fd, nc := pair(t)
		if rnd.Intn(2) == 0 {
			sys.Close(fd)
			nc.Close()
			fd, nc = tcpPair(t)
		}
		if rnd.Intn(3) > 0 {
			syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_SNDBUF, 64<<10)
		}
		c := r.start(f, fd, nc)
		fakes = append(fakes, f)
		clientRnd := rand.New(rand.NewSource(rnd.Int63()))
		all.Go(func() {
			k := inlineStressClient(t, c, i, lines, clientRnd)
			checked.Add(int64(k))
			if k < lines && !s.ends {
				t.Errorf("connection %d: %d of %d answers", i, k, lines)
			}
			c.Close()
			<-f.closed
			servertest.Eventually(t, "all holders are released", func() bool { return s.held.Load() == 0 })
			file.Close()
		})
	}
	all.Wait()
	for i, f := range fakes {
		select {
		case <-f.closed:
		case <-time.After(servertest.Patience):
			t.Fatalf("connection %d did not end: state %b, phase %d", i, f.state.Load(), f.phase)
		}
	}
	r.alive()
	if slots {
		(&crowd{rig: r, slots: three}).empty(3)
	}
	if testing.Verbose() {
		t.Logf("%d answers; %d stalls", checked.Load(), stalls.Load())
	}
}

// expire stands among Commands for what endSoon does else.
const expire Command = 255

// endSoon makes the loop end f, whatever it does then: by mail or, for expire,
// as if the time of a stalled answer were over.
func endSoon(r *rig, f *fake, what Command) {
	if what != expire {
		r.tell(f, what)
		return
	}
	r.loop.Do(func() {
		if f.isStuck() {
			q := f.queue.Load()
			q.Await(0, 1, 0)
			f.Expire()
		}
	})
}

// serve is inlineStressServe, or an answer that may stall.
func (s *stalledStress) serve(f *fake, line string) Next {
	if s.rnd.Intn(2) == 0 || strings.Contains(line, " ") {
		return inlineStressServe(f, line, s.rnd, s.ends)
	}
	n := s.rnd.Intn(50)
	switch s.rnd.Intn(8) {
	case 0:
		n = s.rnd.Intn(1_000_000)
	case 1:
		n = s.rnd.Intn(100_000)
	}
	body := stressBody(line, n)
	s.held.Add(1)
	w := Write{
		A:      fmt.Appendf(nil, "%s %d\n", line, n),
		Holder: &holder{t: f.t, check: s.checker(f), sent: func() { s.held.Add(-1) }},
		Cork:   len(f.Buffered()) > len(f.raw),
	}
	if s.rnd.Intn(2) == 0 && n > 0 {
		if _, err := s.file.WriteAt(body, s.end); err != nil {
			f.t.Error(err)
		}
		w.File, w.Offset, w.Len = s.file, s.end, int64(n)
		s.end += int64(n)
	} else {
		w.B = body
	}
	if f.Send(&w) != nil {
		return Close
	}
	return More
}

// checker makes a Check that does one thing or another, once: it overstays, waits
// for the loop, or ends the connection.
func (s *stalledStress) checker(f *fake) func() error {
	k := s.rnd.Intn(12)
	return func() error {
		what := k
		k = -1
		switch {
		case what == 0:
			for f.state.Load()&owned == 0 { // it overstays
				runtime.Gosched()
			}
		case what == 1:
			// Only the loop ends it: a goroutine that holds the loop must lose it.
			ch := make(chan bool)
			if f.loop.Do(func() { close(ch) }) {
				<-ch
			}
		case what == 2 && s.ends:
			runtime.Goexit()
		case what == 3 && s.ends:
			return errors.New("no")
		}
		return nil
	}
}
