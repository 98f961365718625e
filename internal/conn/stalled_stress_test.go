//go:build linux || darwin

package conn

import (
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
	answer answer
	rnd    *rand.Rand
	// file gets the answers one behind another: what is on its way to the
	// client must stay as it is.
	file *os.File
	end  int64
	ends bool // its handlers may end the connection
}

func stalledStressRound(t *testing.T, seed int64, slots bool) {
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	rnd := rand.New(rand.NewSource(seed))
	var lim Limits
	if slots {
		lim.Slots = loop.NewSlots(3, 1000)
	}
	r := newRig(t, lim)
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
		f := &fake{whole: rnd.Intn(2) == 0}
		quick := map[string]bool{} // Feed and Quick must agree
		f.fed = func(f *fake, line string) {
			if s.answer.under {
				t.Errorf("%q is fed before the answer to the last is out", line)
			}
			clear(quick)
			quick[line] = s.rnd.Intn(12) > 0
		}
		f.quickly = func(line string) bool { return quick[line] }
		what, at := []int{Kill, Drain, -1}[rnd.Intn(3)], int32(rnd.Intn(lines))
		f.serve = func(f *fake, line string) Verdict {
			if s.ends && f.runs.Load() == at {
				endSoon(r, f, what)
			}
			v := s.serve(f, line)
			if v == Stalled {
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
			k := inlineStressClient(c, i, lines, clientRnd)
			checked.Add(int64(k))
			if k < lines && !s.ends {
				t.Errorf("connection %d: %d of %d answers", i, k, lines)
			}
			c.Close()
			<-f.closed
			file.Close()
		})
	}
	all.Wait()
	for i, f := range fakes {
		select {
		case <-f.closed:
		case <-time.After(patience):
			t.Fatalf("connection %d did not end: state %b, phase %d", i, f.state.Load(), f.phase)
		}
	}
	r.alive()
	if slots {
		(&crowd{rig: r, slots: lim.Slots}).empty(3)
	}
	if testing.Verbose() {
		t.Logf("%d answers; %d stalls", checked.Load(), stalls.Load())
	}
}

// endSoon has somebody else end f, at whatever it is then: by mail or, if what
// is -1, as if the time of a stalled answer were over.
func endSoon(r *rig, f *fake, what int) {
	if what >= 0 {
		r.loop.Post(f.place, what)
		return
	}
	r.loop.Do(func() {
		if f.phase == sending && f.state.Load()&owned == 0 {
			f.queued, f.deadline = 0, 0
			f.Expire()
		}
	})
}

// serve is inlineStressServe, or an answer that may stall.
func (s *stalledStress) serve(f *fake, line string) Verdict {
	if !s.answer.under && (s.rnd.Intn(2) == 0 || strings.Contains(line, " ")) {
		return inlineStressServe(f, line, s.rnd, s.ends)
	}
	switch k := s.rnd.Intn(60); {
	case k < 1:
		for f.Outcome() == RanInline { // it overstays
			runtime.Gosched()
		}
	case k < 2:
		// Only the loop ends it: who holds the loop must lose it.
		ch := make(chan bool)
		if f.loop.Do(func() { close(ch) }) {
			<-ch
		}
	case k < 3 && s.ends:
		runtime.Goexit()
	case k < 4 && s.ends:
		return Close
	}
	a := &s.answer
	if a.under {
		return a.serve(f)
	}
	n := s.rnd.Intn(50)
	switch s.rnd.Intn(8) {
	case 0:
		n = s.rnd.Intn(1_000_000)
	case 1:
		n = s.rnd.Intn(100_000)
	}
	a.bytes = fmt.Appendf(nil, "%s %d\n", line, n)
	body := stressBody(line, n)
	if k := s.rnd.Intn(2) * n; k > 0 {
		if _, err := s.file.WriteAt(body, s.end); err != nil {
			f.t.Error(err)
		}
		a.file, a.offset, a.left = s.file, s.end, int64(n)
		a.copying = s.rnd.Intn(4) == 0
		s.end += int64(n)
	} else {
		a.bytes = append(a.bytes, body...)
	}
	return a.serve(f)
}
