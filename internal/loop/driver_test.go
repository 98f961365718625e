//go:build linux || darwin

package loop

import (
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// lease is user code that a runner runs under a lease, and its Holder. run ends
// with Leave, or after the lease is lost, and returns what Ready does. begin, if
// not nil, is called before Enter: after it the lease may be lost at any time on
// a busy machine.
type lease struct {
	begin func()
	run   func(Lease) bool
	lost  func(overstayed bool)
	// lasted, if not nil, is called by Leave if the watch has seen the lease.
	lasted func(d time.Duration)
}

func (c *lease) Lasted(d time.Duration) {
	if c.lasted != nil {
		c.lasted(d)
	}
}

func (c *lease) Lost(overstayed bool) {
	if c.lost != nil {
		c.lost(overstayed)
	}
}

// runner is a Sock that runs one lease after another, each in a Ready of its
// own. Its fields are the loop's.
type runner struct {
	sock
	l     *Loop
	fd    int
	queue []*lease
}

// running is a loop that runs until the test's end.
func running(t *testing.T) *Loop {
	t.Helper()
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	t.Cleanup(func() {
		l.Do(l.Retire)
		if err := servertest.Await(t, done, "the loop's end"); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return l
}

func newRunner(t *testing.T, l *Loop) *runner {
	t.Helper()
	fd, peer := ends(t)
	r := &runner{l: l, fd: fd}
	r.lease = func(poll.Ready) bool {
		for len(r.queue) > 0 {
			c := r.queue[0]
			if r.queue = r.queue[1:]; len(r.queue) > 0 {
				l.Requeue(r.handle) // for the next driver, if this one loses the loop
			}
			if c.begin != nil {
				c.begin()
			}
			if !c.run(l.Enter(c)) {
				return false
			}
		}
		return true
	}
	t.Cleanup(func() { sys.Close(peer) })
	return r
}

// runner attaches one until the test's end.
func (l *Loop) runner(t *testing.T) *runner {
	t.Helper()
	r := newRunner(t, l)
	l.on(t, func() { l.attach(t, &r.sock, r.fd) })
	t.Cleanup(r.detach)
	return r
}

func (r *runner) detach() {
	r.l.Do(func() {
		if r.fd >= 0 {
			r.l.Detach(r.handle)
			r.l.Poller().CloseFD(r.fd)
			r.fd = -1
		}
	})
}

// next has c run in this Ready, or one that follows the present call. It is for the loop's
// goroutine.
func (r *runner) next(c *lease) {
	r.queue = append(r.queue, c)
	r.l.Requeue(r.handle)
}

// on runs f on the loop and waits for it. So it does not return before the loop
// has a driver.
func (l *Loop) on(t *testing.T, f func()) {
	t.Helper()
	done := make(chan bool)
	if !l.Do(func() { f(); close(done) }) {
		t.Fatal("the loop has ended")
	}
	servertest.Await(t, done, "the loop")
}

// overstays computes until k is lost.
func (l *Loop) overstays(k Lease) {
	for l.Held(k) {
		runtime.Gosched()
	}
}

// journal is what happened, in order.
type journal struct {
	mu sync.Mutex
	is []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.is = append(j.is, fmt.Sprintf(format, args...))
}

func (j *journal) has(what string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Contains(j.is, what)
}

func (j *journal) want(t *testing.T, want ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Equal(j.is, want) {
		t.Errorf("got  %q\nwant %q", j.is, want)
	}
}

// Every transition of a lease that no other goroutine has a hand in.
func TestLease(t *testing.T) {
	t.Parallel()
	l := turns(t)
	void := func(k Lease, what string) {
		t.Helper()
		mark := l.mark.Load()
		l.Yield(k) // would start a driver, and change the mark
		if k != 0 && l.Held(k) || l.Leave(k) || l.mark.Load() != mark {
			t.Errorf("%s: the lease is good", what)
		}
	}
	holder := &lease{lost: func(bool) { t.Error("Lost, though nothing was lost") }}
	first := l.Enter(holder)
	if first == 0 || !l.Held(first) {
		t.Error("a lease is not held after Enter")
	}
	if !l.watched.Load() || len(l.alarm) != 1 {
		t.Error("the watch was not called")
	}
	void(0, "none, during a lease")
	if !l.Leave(first) {
		t.Error("a lease was lost to no goroutine")
	}
	void(first, "left")
	second := l.Enter(holder)
	void(first, "the one before")
	if second == first || !l.Leave(second) {
		t.Errorf("the second lease is %d after %d, or is lost", second, first)
	}
	for range 100 {
		k := l.Enter(holder)
		for _, old := range []Lease{first, second} {
			void(old, "an old one")
			if k == old {
				t.Error("a lease came again")
			}
		}
		if !l.Leave(k) {
			t.Error("a lease was lost")
		}
	}
}

// What is quick stays on the driver, one after another. The loop is driven by
// hand, without a watch, so that a busy machine makes nothing late.
func TestQuickLeases(t *testing.T) {
	t.Parallel()
	l := turns(t)
	r := newRunner(t, l)
	defer sys.Close(r.fd)
	l.attach(t, &r.sock, r.fd)
	var did journal
	code := func(i int, then func()) *lease {
		return &lease{
			run: func(k Lease) bool {
				did.add("%d", i)
				if !l.Held(k) {
					t.Errorf("lease %d is not held", i)
				}
				mine := l.Leave(k)
				if !mine {
					t.Errorf("lease %d lost the loop", i)
				}
				then()
				return mine
			},
			lost: func(bool) { t.Errorf("Lost of %d", i) },
		}
	}
	nothing := func() {}
	r.next(code(1, nothing))
	r.next(code(2, func() {
		r.next(code(4, nothing)) // it is the loop again
	}))
	r.next(code(3, nothing))
	for range 2 {
		l.mustTurn(t)
	}
	did.want(t, "1", "2", "3", "4")
	l.Detach(r.handle)
}

// User code that loses the loop, in each way, while it waits for what only the
// loop's next driver does. Lost is called before that driver does anything, and
// before a Leave that fails returns.
func TestLost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		overstayed bool
		lose       func(l *Loop, k Lease)
	}{
		{"Yield", false, func(l *Loop, k Lease) { l.Yield(k) }},
		{"Yield twice", false, func(l *Loop, k Lease) { l.Yield(k); l.Yield(k) }},
		{"Yield by others", false, func(l *Loop, k Lease) {
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() { l.Yield(k) })
			}
			all.Wait()
		}},
		{"waits", true, func(*Loop, Lease) {}},
		{"computes", true, func(l *Loop, k Lease) { l.overstays(k) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := running(t)
			r := l.runner(t)
			var did journal
			var lost atomic.Bool
			release, ended := make(chan bool), make(chan bool)
			code := &lease{
				begin: func() { did.add("run") },
				run: func(k Lease) bool {
					tt.lose(l, k)
					<-release
					if l.Held(k) || l.Leave(k) || !lost.Load() {
						t.Error("a lost lease is good, or Lost has not returned")
					}
					l.Yield(k)
					close(ended)
					return false
				},
				lost: func(overstayed bool) {
					did.add("lost")
					// On a busy machine a Yield may come after the watch.
					if tt.overstayed && !overstayed {
						t.Error("an overstay is taken for a Yield")
					}
					lost.Store(true)
				},
			}
			quick := func(name string) *lease {
				return &lease{begin: func() { did.add("%s", name) }, run: l.Leave}
			}
			l.on(t, func() {
				r.next(quick("before"))
				r.next(code)
				r.next(quick("after"))
				r.next(quick("last"))
				l.Do(func() {
					if !did.has("lost") {
						t.Error("mail came before Lost")
					}
					close(release)
				})
			})
			servertest.Await(t, ended, "the end of the user code")
			for range 3 {
				l.on(t, func() {})
			}
			did.want(t, "before", "run", "lost", "after", "last")
		})
	}
}

// For a lease that the watch has seen and that ends in time, Lasted reports how long
// it ran, from Leave and before anything else runs on the loop; what the watch has
// not seen is not.
func TestLasted(t *testing.T) {
	t.Parallel()
	l := running(t)
	r := l.runner(t)
	told := 0
	for range 2000 {
		done := make(chan bool)
		sees := told%2 == 0
		var lasted time.Duration
		c := &lease{lasted: func(d time.Duration) { told, lasted = told+1, d }}
		c.run = func(k Lease) bool {
			for sees && l.Held(k) && l.seen.Load() != uint64(k) {
				runtime.Gosched()
			}
			defer close(done)
			before, saw := told, l.seen.Load() == uint64(k)
			mine := l.Leave(k)
			if mine && saw && (told != before+1 || lasted < 0) || !mine && told != before {
				t.Errorf("seen %v, kept %v: Lasted was called %d times, with %v", saw, mine, told-before, lasted)
			}
			return mine
		}
		l.on(t, func() { r.next(c) })
		servertest.Await(t, done, "the lease")
		if told >= 50 {
			break
		}
	}
	l.on(t, func() {}) // told is the loop's
	if told == 0 {
		t.Error("Lasted was never called")
	}
}

// Leave fails at the moment at which the lease is taken: it must not return
// before Lost has.
func TestLeaveMeetsLost(t *testing.T) {
	t.Parallel()
	l := running(t)
	r := l.runner(t)
	for range 2000 {
		done := make(chan bool)
		begun, ended := false, false // not atomic: Leave orders them
		var k Lease
		go func() {
			<-done
			l.Yield(k)
		}()
		again := make(chan bool)
		c := &lease{lost: func(bool) {
			begun = true
			runtime.Gosched()
			ended = true
		}}
		c.run = func(lease Lease) bool {
			k = lease
			close(done)
			runtime.Gosched()
			mine := l.Leave(k)
			if !mine && (!begun || !ended) {
				t.Errorf("Leave returned before Lost did: begun %v, ended %v", begun, ended)
			}
			if mine && begun {
				t.Error("Lost was called for a lease that was left")
			}
			close(again)
			return mine
		}
		l.on(t, func() { r.next(c) })
		servertest.Await(t, again, "the user code")
	}
}

// User code that does all of this at random: each runs once and in order, and
// Lost comes once for each that has lost, before the next begins.
func TestDriversModel(t *testing.T) {
	t.Parallel()
	l := running(t)
	r := l.runner(t)
	const n = 150
	rnd := rand.New(rand.NewSource(1))
	var did journal
	var lost [n]atomic.Int32
	var codes []*lease
	var all sync.WaitGroup
	last := make(chan bool)
	loses := func(kind int) bool { return kind < 4 }
	kinds := make([]int, n)
	for i := range n {
		kind := rnd.Intn(8)
		kinds[i] = kind
		c := &lease{
			begin: func() { did.add("run %d", i) },
			lost:  func(bool) { lost[i].Add(1); did.add("lost %d", i) },
		}
		all.Add(1)
		c.run = func(k Lease) bool {
			defer all.Done()
			if i == n-1 {
				close(last)
			}
			switch kind {
			case 0:
				l.Yield(k)
			case 1:
				l.overstays(k)
			case 2:
				go l.Yield(k)
				l.overstays(k)
			case 3:
				l.Yield(k)
				runtime.Goexit()
			}
			return l.Leave(k)
		}
		codes = append(codes, c)
	}
	l.on(t, func() {
		for _, c := range codes[:n/2] {
			r.next(c)
		}
	})
	// And some come one by one.
	for _, c := range codes[n/2:] {
		l.Do(func() { r.next(c) })
	}
	servertest.Await(t, last, "the last one")
	all.Wait()
	l.on(t, func() {})
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("run %d", i))
		switch k := lost[i].Load(); {
		case k > 1 || k == 0 && loses(kinds[i]):
			t.Errorf("Lost of %d was called %d times", i, k)
		case k == 1:
			want = append(want, fmt.Sprintf("lost %d", i)) // a quick one may, on a busy machine
		}
	}
	did.want(t, want...)
	servertest.Eventually(t, "only the driver is left of the pool", func() bool {
		workers, idle := l.pool.counts()
		return workers == idle // the driver is not counted
	})
}

// Many are ready in one batch, and the user code of each costs the loop its
// driver: every event is dealt with once, and its user code begins before the
// next event.
func TestEventsGoOn(t *testing.T) {
	t.Parallel()
	l := running(t)
	const n = 20
	var did journal
	var fds []int
	seen := map[int]int{}
	all := make(chan bool)
	release := make(chan bool)
	var codes sync.WaitGroup
	l.on(t, func() {
		for i := range n {
			fd, peer := ends(t)
			fds = append(fds, fd, peer)
			sys.Write(peer, []byte("x"))
			s := &sock{}
			s.lease = func(r poll.Ready) bool {
				if r&poll.Readable == 0 {
					return true
				}
				if seen[i]++; seen[i] > 1 {
					t.Errorf("event %d came %d times", i, seen[i])
				}
				if len(seen) == n {
					l.Do(func() { close(all) })
				}
				codes.Add(1)
				defer codes.Done()
				did.add("run %d", i)
				k := l.Enter(&lease{lost: func(bool) { did.add("lost %d", i) }})
				switch i % 3 {
				case 1:
					l.Yield(k)
					<-release
				case 2:
					l.Yield(k)
				}
				return l.Leave(k)
			}
			l.attach(t, s, fd)
		}
	})
	servertest.Await(t, all, "all events")
	close(release)
	codes.Wait()
	l.on(t, func() {
		if len(seen) != n {
			t.Errorf("%d of %d events were seen", len(seen), n)
		}
		for i := range uint32(l.slots.count) {
			if l.slots.at(i).sock != nil {
				l.Detach(Handle{i, l.slots.at(i).gen})
			}
		}
	})
	did.mu.Lock()
	defer did.mu.Unlock()
	for i, what := range did.is {
		var k int
		if c, _ := fmt.Sscanf(what, "run %d", &k); c == 1 && k%3 != 0 {
			if i+1 == len(did.is) || did.is[i+1] != fmt.Sprintf("lost %d", k) {
				t.Errorf("%q is not followed by its Lost: %q", what, did.is)
			}
		}
	}
	for _, fd := range fds {
		sys.Close(fd)
	}
}

// A turn is lost in the middle of its events, or of its requeued Socks: the next
// driver goes on exactly where it stopped, with nothing left out or done twice. On a slow
// machine a step of a turn may go on in the next one, after the steps that follow it.
func TestTurnGoesOn(t *testing.T) {
	t.Parallel()
	for _, lose := range []string{"event", "requeued"} {
		t.Run(lose, func(t *testing.T) {
			t.Parallel()
			l, err := New()
			if err != nil {
				t.Fatal(err)
			}
			var did journal
			var fds []int
			var socks []*sock
			var calls atomic.Int32
			end := make(chan bool)
			called := func() {
				if calls.Add(1) == 4*3 {
					close(end)
				}
			}
			for i := range 3 {
				fd, peer := ends(t)
				fds = append(fds, fd, peer)
				s := &sock{}
				s.lease = func(r poll.Ready) bool {
					what := "requeued"
					if r != 0 {
						what = "event"
					}
					did.add("%s %d", what, i)
					defer called()
					if what != lose || i == 2 {
						return true
					}
					k := l.Enter(&lease{lost: func(bool) { did.add("lost") }})
					l.Yield(k)
					if l.Leave(k) {
						t.Error("it is not lost")
					}
					return false
				}
				s.mail = func(any) {
					did.add("mail %d", i)
					l.Requeue(s.handle)
					called()
				}
				s.expire = func() {
					did.add("timer %d", i)
					called()
				}
				l.attach(t, s, fd)
				socks = append(socks, s)
			}
			// All of this is of one turn: the first events say that the sockets are
			// writable.
			if err := l.wait(); err != nil || l.got != 3 {
				t.Fatalf("%d events, %v", l.got, err)
			}
			for i, s := range socks {
				l.Post(s.handle, 0)
				l.Arm(s.handle, l.now-int64(3-i)*int64(time.Millisecond))
			}
			order := []int{}
			for _, ev := range l.events[:3] {
				order = append(order, slices.IndexFunc(socks, func(s *sock) bool { return s.handle == handleOf(ev.Key) }))
			}
			if l.turn() {
				t.Error("the loop is still the caller's")
			}
			servertest.Await(t, end, "the last call")
			did.mu.Lock()
			for _, what := range []string{"event", "mail", "requeued", "timer"} {
				in := []int{0, 1, 2}
				if what == "event" {
					in = order
				}
				var want []string
				for _, i := range in {
					if want = append(want, fmt.Sprintf("%s %d", what, i)); what == lose && i < 2 {
						want = append(want, "lost")
					}
				}
				got := slices.DeleteFunc(slices.Clone(did.is), func(s string) bool {
					return !strings.HasPrefix(s, what) && (s != "lost" || what != lose)
				})
				if !slices.Equal(got, want) {
					t.Errorf("got  %q\nwant %q", got, want)
				}
			}
			did.mu.Unlock()
			l.on(t, func() {
				for _, s := range socks {
					l.Detach(s.handle)
				}
				l.Retire()
			})
			if err := servertest.Await(t, l.ended, "the loop's end"); err != nil {
				t.Error(err)
			}
			for _, fd := range fds {
				sys.Close(fd)
			}
		})
	}
}
