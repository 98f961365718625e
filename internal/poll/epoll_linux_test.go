package poll

import (
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestMilliseconds(t *testing.T) {
	t.Parallel()
	const ms = int64(time.Millisecond)
	for _, tt := range []struct {
		what       string
		until, now int64
		want       int
	}{
		{"no end", Never, 5, -1},
		{"no end, early", Never, 0, -1},
		{"over", 5, 6, 0},
		{"long over", 1, Never - 1, 0},
		{"just now", 7, 7, 0},
		{"a moment is not nothing", 8, 7, 1},
		{"all but one", 7 + ms - 1, 7, 1},
		{"one", 7 + ms, 7, 1},
		{"one and a moment", 7 + ms + 1, 7, 2},
		{"an hour", 7 + 3600_000*ms, 7, 3600_000},
		{"no more than an hour", 8 + 3600_000*ms, 7, 3600_000},
		{"far away, no overflow", Never - 1, 0, 3600_000},
	} {
		if got := milliseconds(tt.until, tt.now); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.what, got, tt.want)
		}
	}
}

// brief is a poller whose next Wait keeps the processor.
func brief(t *testing.T) *epoll {
	p := open(t).(*epoll)
	p.brief = proof
	return p
}

// A wait in epoll_wait ends for whatever one on the runtime's poller does.
func TestBriefWait(t *testing.T) {
	t.Parallel()
	events := make([]Event, 8)
	wait := func(p *epoll, until int64, during func()) (got []Event) {
		t.Helper()
		waiting, done := make(chan bool), make(chan bool)
		go func() {
			defer close(done)
			p.brief = proof
			close(waiting)
			n, err := p.Wait(events, until)
			if err != nil {
				t.Error(err)
			}
			got = events[:n]
		}()
		<-waiting
		during()
		select {
		case <-done:
		case <-time.After(servertest.Patience):
			t.Fatal("Wait does not end")
		}
		return got
	}
	for range 20 {
		p := brief(t)
		p.Wake()
		if got := wait(p, Never, func() {}); len(got) != 0 {
			t.Errorf("a Wake before is %v", got)
		}
		if got := wait(p, Never, p.Wake); len(got) != 0 {
			t.Errorf("a Wake around is %v", got)
		}
		end := sys.Nanotime() + int64(time.Millisecond)
		for early := 0; sys.Nanotime() < end; early++ {
			if got := wait(p, end, func() {}); len(got) != 0 || early > 5 { // a signal may end it
				t.Fatalf("nothing happened: got %v, %d ns early", got, end-sys.Nanotime())
			}
		}
		if got := wait(p, 1, func() {}); len(got) != 0 {
			t.Errorf("long over: got %v", got)
		}
		a, b := pair(t)
		if err := p.Add(a, 3); err != nil {
			t.Fatal(err)
		}
		if got := wait(p, Never, func() {}); len(got) != 1 || got[0] != (Event{3, Writable}) {
			t.Errorf("got %v of a new socket", got)
		}
		got := wait(p, Never, func() { sys.Write(b, []byte("x")) })
		if len(got) != 1 || got[0].Key != 3 || got[0].Ready&Readable == 0 {
			t.Errorf("got %v of a readable socket", got)
		}
	}
}

// How the next wait is done follows from how long the last one was.
func TestBriefFollowsWaits(t *testing.T) {
	t.Parallel()
	p := open(t).(*epoll)
	events := make([]Event, 8)
	wait := func(until int64) {
		t.Helper()
		if _, err := p.Wait(events, until); err != nil {
			t.Fatal(err)
		}
	}
	long := func() { wait(sys.Nanotime() + int64(2*time.Millisecond)) }
	if p.brief >= proof {
		t.Error("at first")
	}
	for range 3 {
		// Another process may have the processor meanwhile: not every wait is brief, and on a busy
		// machine hardly so many in a row are, so those that were not do not count.
		for deadline := time.Now().Add(servertest.Patience); p.brief < proof; {
			if time.Now().After(deadline) {
				t.Fatal("no wait was brief")
			}
			before := p.brief
			// Only a wait that has parked counts, and that needs a Wake from another goroutine, which
			// must not have the processor before: a wait that keeps the only one is not brief.
			p.short, p.yielded = 0, sys.Nanotime()
			woken := make(chan struct{})
			go func() {
				p.Wake()
				close(woken)
			}()
			wait(Never)
			<-woken
			wait(Now) // drains the Wake if it came late
			if p.brief != before && p.brief != before+1 && p.brief != 0 {
				t.Fatalf("%d brief waits, then %d", before, p.brief)
			}
			p.brief = max(p.brief, before)
		}
		p.brief = proof
		wait(Now)
		if p.brief < proof {
			t.Error("a look without waiting is no wait")
		}
		long()
		if p.brief >= proof {
			t.Error("after a long wait in epoll_wait")
		}
		long()
		if p.brief >= proof {
			t.Error("after a long wait on the runtime's poller")
		}
	}
}

// A wait that is expected to be short leaves the processor while others need it.
func TestBusy(t *testing.T) {
	events := make([]Event, 8)
	for _, others := range []bool{false, true} {
		p := open(t).(*epoll)
		p.busy.Store(others)
		for i := 0; i < 1000 && p.armed == 0; i++ {
			p.short, p.waitedAt = 4*proof, sys.Nanotime()
			woken := make(chan struct{})
			go func() {
				defer close(woken)
				p.Wake() // perhaps before Wait, which then does not wait
			}()
			if _, err := p.Wait(events, sys.Nanotime()+int64(time.Hour)); err != nil {
				t.Fatal(err)
			}
			<-woken
		}
		if parked := p.armed != 0; parked != others {
			t.Errorf("busy is %v: parked on the runtime's poller: %v", others, parked)
		}
	}
}

// The one who yields has the only processor and never parks by itself: who
// waits for a pipe runs nevertheless, within a few calls. (By runtime.Gosched
// it takes the monitor, and thousands of calls.)
func TestYield(t *testing.T) {
	const key = "CHERT_TEST_YIELD"
	if os.Getenv(key) == "" {
		t.Parallel()
		cmd := exec.Command(os.Args[0], "-test.run=^TestYield$")
		// A process of its own: GOMAXPROCS is everybody's.
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1", key+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, strings.TrimSpace(string(out)))
		}
		return
	}
	p := open(t).(*epoll)
	events := make([]Event, 8)
	for name, yield := range map[string]func(){
		"yield": p.pause.yield,
		"Wait, now": func() {
			p.yielded = 0
			p.Wait(events, Now)
		},
		"brief Wait": func() {
			p.yielded, p.brief = 0, proof
			p.Wake() // so there is always something
			p.Wait(events, Never)
		},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var got atomic.Int64
		go func() {
			for b := make([]byte, 1); ; got.Add(1) {
				if _, err := r.Read(b); err != nil {
					return
				}
			}
		}()
		fd := int(w.Fd()) // writes are raw: they give nothing away
		yield()           // the reader waits now
		const rounds = 200
		// A round may be slow for once, when the reader's thread was not given
		// a processor of the machine's.
		slow := 0
		for i := range int64(rounds) {
			syscall.Write(fd, []byte("x"))
			calls := 0
			for ; got.Load() == i; calls++ {
				yield()
				if calls > 1000*rounds {
					t.Fatalf("%s: the reader ran %d times in %d calls", name, got.Load(), calls)
				}
			}
			if calls > 5 {
				slow++
			}
		}
		if slow > rounds/4 {
			t.Errorf("%s: %d of %d rounds took more than 5 calls", name, slow, rounds)
		}
		w.Close()
		r.Close()
	}
}

// What Wait does to park allocates nothing.
func TestParkAllocations(t *testing.T) {
	p := open(t).(*epoll)
	if _, err := p.Wait(make([]Event, 8), Now); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() {
		p.Wake()
		if err := p.parker.wait(Never, p.try); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
