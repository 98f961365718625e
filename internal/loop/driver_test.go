//go:build linux || darwin

package loop

import (
	"bytes"
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
)

// inlineTask is an InlineTask made of functions.
type inlineTask struct {
	run  func(Ticket) bool
	lost func()
}

func (i *inlineTask) Run(t Ticket) bool { return i.run(t) }

func (i *inlineTask) Lost() {
	if i.lost != nil {
		i.lost()
	}
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
		if err := await(t, done, "the loop's end"); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return l
}

// on runs f on the loop and waits for it. So it does not return before the loop
// has a driver.
func (l *Loop) on(t *testing.T, f func()) {
	t.Helper()
	done := make(chan bool)
	if !l.Do(func() { f(); close(done) }) {
		t.Fatal("the loop has ended")
	}
	await(t, done, "the loop")
}

// overstays computes until t is lost.
func (l *Loop) overstays(t Ticket) {
	for l.Held(t) {
		runtime.Gosched()
	}
}

// goid tells goroutines apart.
func goid() string {
	b := make([]byte, 64)
	return string(bytes.Fields(b[:runtime.Stack(b, false)])[1])
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

func (j *journal) want(t *testing.T, want ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Equal(j.is, want) {
		t.Errorf("got  %q\nwant %q", j.is, want)
	}
}

// Every transition of a ticket; nobody else has a hand in it.
func TestTicket(t *testing.T) {
	t.Parallel()
	l := turns(t)
	void := func(x Ticket, what string) {
		t.Helper()
		mark := l.mark.Load()
		l.HandOff(x) // would start a driver, and change the mark
		if x != 0 && l.Held(x) || l.Leave(x) || l.Renew(x) != 0 || l.mark.Load() != mark {
			t.Errorf("%s: the ticket is good", what)
		}
	}
	void(0, "none")
	first := l.enter()
	if first == 0 || !l.Held(first) {
		t.Error("a ticket is not held by who entered")
	}
	if !l.watched.Load() || len(l.alarm) != 1 {
		t.Error("the watch was not called")
	}
	void(0, "none, during a task")
	if !l.Leave(first) {
		t.Error("a ticket was lost to nobody")
	}
	void(first, "left")
	second := l.enter()
	void(first, "the one before")
	third := l.Renew(second)
	if third == 0 || third == second || !l.Held(third) {
		t.Errorf("%d was renewed to %d, held %v", second, third, l.Held(third))
	}
	void(second, "renewed")
	if !l.take(third) || l.take(third) {
		t.Error("a ticket is taken once")
	}
	void(third, "taken")
	fourth := l.enter()
	for _, old := range []Ticket{first, second, third} {
		void(old, "an old one")
		if fourth == old {
			t.Error("a ticket came again")
		}
	}
	if !l.Leave(fourth) {
		t.Error("the last ticket was lost")
	}
}

// What is quick stays on the driver, in order, behind one another.
func TestInlineTasks(t *testing.T) {
	t.Parallel()
	l := running(t)
	var did journal
	var driver string
	task := func(i int, leave func(Ticket) bool) *inlineTask {
		return &inlineTask{
			run: func(k Ticket) bool {
				did.add("%d", i)
				if !l.Held(k) || goid() != driver || l.Prompt() {
					t.Errorf("task %d: held %v, on the driver %v, prompt %v", i, l.Held(k), goid() == driver, l.Prompt())
				}
				if !leave(k) {
					t.Errorf("task %d lost the loop", i)
				}
				return true
			},
			lost: func() { t.Errorf("Lost of task %d", i) },
		}
	}
	l.on(t, func() {
		driver = goid()
		l.Next(task(1, l.Leave))
		l.Next(task(2, func(k Ticket) bool { return l.Leave(l.Renew(l.Renew(k))) }))
		l.Next(task(3, func(k Ticket) bool {
			ok := l.Leave(k)
			l.Next(task(4, l.Leave)) // it is the loop again
			return ok
		}))
		did.add("0")
	})
	l.on(t, func() {
		if goid() != driver {
			t.Error("the driver has changed")
		}
	})
	did.want(t, "0", "1", "2", "3", "4")
	if l.current != nil {
		t.Error("a task that has ended is the current one")
	}
}

// A task that loses the loop, in each way, while it waits for what only the
// loop's next driver does. That calls Lost before all else.
func TestLost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		lose func(l *Loop, k Ticket) Ticket
	}{
		{"HandOff", func(l *Loop, k Ticket) Ticket { l.HandOff(k); return k }},
		{"HandOff twice", func(l *Loop, k Ticket) Ticket { l.HandOff(k); l.HandOff(k); return k }},
		{"HandOff of a renewed one", func(l *Loop, k Ticket) Ticket { k = l.Renew(k); l.HandOff(k); return k }},
		{"HandOff by another", func(l *Loop, k Ticket) Ticket {
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() { l.HandOff(k) })
			}
			all.Wait()
			return k
		}},
		{"waits", func(l *Loop, k Ticket) Ticket { return k }},
		{"computes", func(l *Loop, k Ticket) Ticket { l.overstays(k); return k }},
		{"computes, renewed", func(l *Loop, k Ticket) Ticket { k = l.Renew(k); l.overstays(k); return k }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := running(t)
			var did journal
			var driver string
			release, ended := make(chan bool), make(chan bool)
			task := &inlineTask{
				run: func(k Ticket) bool {
					did.add("run")
					k = tt.lose(l, k)
					<-release
					if l.Held(k) || l.Leave(k) || l.Renew(k) != 0 {
						t.Error("a lost ticket is good")
					}
					l.HandOff(k)
					close(ended)
					return false
				},
				lost: func() {
					if goid() == driver {
						t.Error("Lost by the one who has lost")
					}
					did.add("lost")
				},
			}
			quick := func(name string) *inlineTask {
				return &inlineTask{
					run:  func(k Ticket) bool { did.add("%s", name); return l.Leave(k) },
					lost: func() { t.Errorf("Lost of %s", name) },
				}
			}
			l.on(t, func() {
				driver = goid()
				l.Next(quick("before"))
				l.Next(task)
				l.Next(quick("behind"))
				l.Next(quick("last"))
				l.Do(func() {
					if did.mu.Lock(); !slices.Contains(did.is, "lost") {
						t.Error("mail came before Lost")
					}
					did.mu.Unlock()
					close(release)
				})
			})
			await(t, ended, "the task's end")
			l.on(t, func() {})
			l.on(t, func() {})
			did.want(t, "before", "run", "lost", "behind", "last")
		})
	}
}

// Tasks that do all of this at random: each runs once and in order, and Lost
// comes once for each that has lost, before the next begins.
func TestDriversModel(t *testing.T) {
	t.Parallel()
	l := running(t)
	const n = 150
	rnd := rand.New(rand.NewSource(1))
	var did journal
	var want []string
	var tasks []*inlineTask
	var all sync.WaitGroup
	last := make(chan bool)
	for i := range n {
		kind := rnd.Intn(8)
		task := &inlineTask{lost: func() { did.add("lost %d", i) }}
		want = append(want, fmt.Sprintf("run %d", i))
		if kind < 4 {
			want = append(want, fmt.Sprintf("lost %d", i))
		}
		all.Add(1)
		task.run = func(k Ticket) bool {
			defer all.Done()
			did.add("run %d", i)
			if i == n-1 {
				close(last)
			}
			switch kind {
			case 0:
				l.HandOff(k)
			case 1:
				l.overstays(k)
			case 2:
				go l.HandOff(k)
				l.overstays(k)
			case 3:
				l.HandOff(k)
				runtime.Goexit()
			case 4, 5:
				// Renewed, it may compute for longer than one alone may.
				k = l.Renew(k)
			}
			return l.Leave(k)
		}
		tasks = append(tasks, task)
	}
	l.on(t, func() {
		for _, task := range tasks[:n/2] {
			l.Next(task)
		}
	})
	// And some come one by one.
	for _, task := range tasks[n/2:] {
		l.Do(func() { l.Next(task) })
	}
	await(t, last, "the last task")
	all.Wait()
	l.on(t, func() {})
	did.want(t, want...)
	eventually(t, "only the driver is left of the pool", func() bool {
		l.pool.mu.Lock()
		defer l.pool.mu.Unlock()
		return l.pool.workers == len(l.pool.idle) // the driver is not counted
	})
}

// Many are ready in one batch, and the task of each costs the loop its driver:
// every event is dealt with once, and its task runs before the next event.
func TestEventsGoOn(t *testing.T) {
	t.Parallel()
	l := running(t)
	const n = 20
	var did journal
	var fds []int
	seen := map[int]int{}
	all := make(chan bool)
	release := make(chan bool)
	var tasks sync.WaitGroup
	inTask := false // the loop's: nobody drives while it is set
	l.on(t, func() {
		for i := range n {
			fd, peer := ends(t)
			fds = append(fds, fd, peer)
			sys.Write(peer, []byte("x"))
			s := &sock{}
			s.ready = func(r poll.Ready) {
				if r&poll.Readable == 0 {
					return
				}
				if seen[i]++; seen[i] > 1 {
					t.Errorf("event %d came %d times", i, seen[i])
				}
				if !l.Prompt() || inTask {
					t.Errorf("event %d: prompt %v, before the task of another: %v", i, l.Prompt(), inTask)
				}
				inTask = true
				tasks.Add(1)
				task := &inlineTask{}
				task.run = func(k Ticket) bool {
					defer tasks.Done()
					inTask = false
					if l.Prompt() {
						t.Error("prompt in a task")
					}
					did.add("run %d", i)
					count := len(seen)
					if i%3 == 0 {
						return l.Leave(k)
					}
					l.HandOff(k)
					if count == n {
						close(all)
					}
					if i%3 == 1 {
						<-release
					}
					return l.Leave(k)
				}
				task.lost = func() { did.add("lost %d", i) }
				l.Next(task)
				if len(seen) == n && i%3 == 0 {
					l.Do(func() { close(all) })
				}
			}
			l.attach(t, s, fd)
		}
	})
	await(t, all, "all events")
	close(release)
	tasks.Wait()
	l.on(t, func() {
		if len(seen) != n {
			t.Errorf("%d of %d events were seen", len(seen), n)
		}
		for i := range l.slots {
			if l.slots[i].sock != nil {
				l.Detach(Place{uint32(i), l.slots[i].gen})
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

// Two tasks of one event: the second too runs before any other Sock is called,
// also when the first has cost the loop its driver.
func TestTasksOfOneEvent(t *testing.T) {
	t.Parallel()
	l := running(t)
	var did journal
	var fds []int
	all := make(chan bool)
	seen := 0
	l.on(t, func() {
		for range 2 {
			fd, peer := ends(t)
			fds = append(fds, fd, peer)
			sys.Write(peer, []byte("x"))
			s := &sock{}
			s.ready = func(r poll.Ready) {
				if r&poll.Readable == 0 {
					return
				}
				did.add("event")
				l.Next(&inlineTask{run: func(k Ticket) bool {
					did.add("first")
					l.HandOff(k)
					return false
				}})
				l.Next(&inlineTask{run: func(k Ticket) bool {
					did.add("second")
					if seen++; seen == 2 {
						defer close(all)
					}
					return l.Leave(k)
				}})
				l.Detach(s.place)
			}
			l.attach(t, s, fd)
		}
	})
	await(t, all, "both events")
	did.want(t, "event", "first", "second", "event", "first", "second")
	for _, fd := range fds {
		sys.Close(fd)
	}
}

// Prompt is true in the Ready of an event and nowhere else.
func TestPrompt(t *testing.T) {
	t.Parallel()
	l := turns(t)
	fd, peer := ends(t)
	defer sys.Close(fd)
	defer sys.Close(peer)
	var did journal
	note := func(what string) { did.add("%s %v", what, l.Prompt()) }
	s := &sock{}
	s.ready = func(r poll.Ready) {
		if r == 0 {
			note("again")
			return
		}
		note("event")
		l.Again(s.place)
		l.Arm(&s.node, l.Now())
		l.Post(s.place, 0)
		l.Do(func() { note("do") })
		l.Next(&inlineTask{run: func(k Ticket) bool {
			note("task")
			ok := l.Leave(k)
			note("left")
			return ok
		}})
	}
	s.mail = func(int) { note("mail") }
	s.expire = func() { note("timer") }
	l.attach(t, s, fd)
	l.mustTurn(t)
	for len(did.is) < 7 {
		l.mustTurn(t) // the timer is still to come
	}
	did.want(t, "event true", "task false", "left false", "mail false", "do false", "again false", "timer false")
	note("after")
	if l.Prompt() {
		t.Error("prompt outside")
	}
	l.Detach(s.place)
}

// A task that ends its goroutine after HandOff ends neither the loop nor the
// pool, be its goroutine the loop's first or a spare.
func TestGoexitAfterHandOff(t *testing.T) {
	t.Parallel()
	l := running(t)
	var lost atomic.Int64
	for range 10 {
		l.on(t, func() {
			l.Next(&inlineTask{
				run: func(k Ticket) bool {
					l.HandOff(k)
					runtime.Goexit()
					return false
				},
				lost: func() { lost.Add(1) },
			})
		})
	}
	l.on(t, func() {})
	if lost.Load() != 10 {
		t.Errorf("Lost was called %d times", lost.Load())
	}
	eventually(t, "their goroutines are gone", func() bool {
		workers, idle := l.pool.counts()
		return workers == 0 && idle == 0
	})
	ran := make(chan bool)
	l.on(t, func() { l.Go(taskFunc(func() { close(ran) })) })
	await(t, ran, "a task of the pool")
}

// The loop ends while those who drove it before are still at their tasks.
func TestRetireWithFormerDrivers(t *testing.T) {
	t.Parallel()
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	release := make(chan bool)
	var tasks sync.WaitGroup
	const n = 5
	tasks.Add(n)
	for i := range n {
		l.on(t, func() {
			l.Next(&inlineTask{run: func(k Ticket) bool {
				defer tasks.Done()
				if i%2 == 0 {
					l.HandOff(k)
				}
				<-release
				if i == 0 {
					defer runtime.Goexit()
				}
				if l.Do(func() {}) {
					t.Error("the loop has not ended")
				}
				l.HandOff(k)
				return l.Leave(k)
			}})
		})
	}
	l.on(t, l.Retire)
	if err := await(t, done, "the loop's end"); err != nil {
		t.Error(err)
	}
	if len(l.ready) != 0 || l.current != nil {
		t.Errorf("left: %v, %v", l.ready, l.current)
	}
	close(release)
	tasks.Wait()
	eventually(t, "all goroutines have ended", func() bool {
		workers, idle := l.pool.counts()
		return workers == 0 && idle == 0
	})
}

// The watch sleeps when no tasks run, and is there again for the next.
func TestWatchSleeps(t *testing.T) {
	t.Parallel()
	l := running(t)
	if l.watched.Load() {
		t.Error("awake at first")
	}
	for range 3 {
		// A quick one wakes it.
		l.on(t, func() { l.Next(&inlineTask{run: l.Leave}) })
		l.on(t, func() {})
		eventually(t, "the watch sleeps", func() bool { return !l.watched.Load() && len(l.alarm) == 0 })
		// It takes the loop from one that waits for the loop.
		release, ended := make(chan bool), make(chan bool)
		l.on(t, func() {
			l.Next(&inlineTask{run: func(k Ticket) bool {
				<-release
				close(ended)
				return l.Leave(k)
			}})
		})
		l.on(t, func() { close(release) })
		await(t, ended, "the task's end")
		eventually(t, "the watch sleeps", func() bool { return !l.watched.Load() })
	}
}

// Quick tasks begin at the moment at which the watch goes to sleep, again and
// again; the one that stays afterwards must find it awake.
func TestWatchMeetsTask(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 8 {
		l := running(t)
		all.Go(func() {
			for range 2 {
				l.Do(func() { l.Next(&inlineTask{run: l.Leave}) })
				for l.mark.Load() == 0 || l.watched.Load() {
					runtime.Gosched()
				}
				entered, release, ended := make(chan bool), make(chan bool), make(chan bool)
				l.Do(func() {
					l.Next(&inlineTask{run: func(k Ticket) bool {
						close(entered)
						<-release
						close(ended)
						return l.Leave(k)
					}})
				})
				<-entered
				l.Do(func() { close(release) })
				select {
				case <-ended:
				case <-time.After(patience):
					t.Error("the watch sleeps while a task stays")
					close(release)
				}
			}
		})
	}
	all.Wait()
}

// Who has lost the loop keeps the bytes that it has pinned in the scratch buffer
// until its task has ended.
func TestScratchIsNotShared(t *testing.T) {
	t.Parallel()
	l := running(t)
	const n = 6
	release := make(chan bool)
	var tasks sync.WaitGroup
	buffers := map[*byte]int{}
	for i := range n {
		tasks.Add(1)
		l.on(t, func() {
			p := l.Scratch()
			if len(p) != scratchSize {
				t.Errorf("%d bytes", len(p))
			}
			if j, ok := buffers[&p[0]]; ok {
				t.Errorf("drivers %d and %d have the same buffer", j, i)
			}
			buffers[&p[0]] = i
			for j := range p {
				p[j] = byte(i)
			}
			l.Pin()
			l.Next(&inlineTask{run: func(k Ticket) bool {
				defer tasks.Done()
				if i%2 == 0 {
					l.HandOff(k)
				}
				<-release
				if bytes.Count(p, []byte{byte(i)}) != len(p) {
					t.Errorf("the bytes of driver %d have changed", i)
				}
				return l.Leave(k)
			}})
		})
	}
	l.on(t, func() {
		if p := l.Scratch(); buffers[&p[0]] != 0 {
			t.Error("the present driver has the buffer of a former one")
		}
	})
	close(release)
	tasks.Wait()
}

// Spare drivers that are not needed any more end as other workers do.
func TestSparesEnd(t *testing.T) {
	t.Parallel()
	l := running(t)
	release := make(chan bool)
	var tasks sync.WaitGroup
	for range 10 {
		tasks.Add(1)
		l.on(t, func() {
			l.Next(&inlineTask{run: func(k Ticket) bool {
				defer tasks.Done()
				l.HandOff(k)
				<-release
				return l.Leave(k)
			}})
		})
	}
	close(release)
	tasks.Wait()
	eventually(t, "the spares have ended", func() bool {
		workers, idle := l.pool.counts()
		return workers == 0 && idle == 0
	})
}
