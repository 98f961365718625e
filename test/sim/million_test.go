//go:build linux

package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sim"
	"github.com/chert-http/chert/internal/testhook"
	"github.com/chert-http/chert/internal/testing/race"
	"github.com/chert-http/chert/websocket"
)

// Figures of a server with very many idle connections, on pollers whose clients take 24 bytes
// each. What is checked are counts; times are only logged, since other processes may run.

var crowdSize = flag.Int("sim.crowd", 0, "how many connections TestMillion has; 0: 200,000, or 20,000 if short")

const (
	// mostHeap and mostObjects are what an idle connection may take of the heap.
	mostHeap    = 400
	mostObjects = 1.1
	// headTime is after how long the timer of each connection fires for the first time.
	headTime = 10 * time.Second
	// mostCalls bounds what a turn does where no handler runs: 32 events, then mail, a
	// broadcast, due sockets and timers of 256 each, with up to three calls for one.
	mostCalls = 3 * (32 + 3*256)
)

// million is a server and its clients.
type million struct {
	*chert.Server
	t      *testing.T
	crowds []*sim.Crowd
	ended  chan error
	n      int // connections
	heap   uint64
	count  uint64 // objects
}

// newMillion serves h on two loops, for n clients.
func newMillion(t *testing.T, n int, h http.Handler, idle time.Duration) *million {
	t.Helper()
	n &^= 1
	m := &million{t: t, n: n, ended: make(chan error, 1)}
	m.Server = &chert.Server{
		Handler: h, MaxConns: -1, IdleTimeout: idle, ReadHeaderTimeout: headTime, ErrorLog: log.New(io.Discard, "", 0),
	}
	for i := range 2 {
		m.crowds = append(m.crowds, sim.NewCrowd(uint8(10+i), n/2+1))
	}
	next := 0
	testhook.Of(m.Server).Kernel(&testhook.Kernel{
		Loops:   len(m.crowds),
		Poller:  func() (poll.Poller, error) { next++; return m.crowds[next-1], nil },
		Sockets: func(int) ([]int, error) { return []int{m.crowds[0].Listen(), m.crowds[1].Listen()}, nil },
	})
	l, err := m.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { m.ended <- m.Serve(l) }()
	// The active client, and what all servers have.
	s := m.script(get)
	for _, c := range m.crowds {
		c.Dial(1)
	}
	m.await("the first clients", func(_ int, c sim.Counts) bool { return c.Accepted == 1 })
	for range 1000 {
		for _, c := range m.crowds {
			c.Exchange(0, s)
		}
	}
	m.heap, m.count = live()
	return m
}

// live returns the bytes and objects that are in use.
func live() (bytes, objects uint64) {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc, s.HeapObjects
}

// await waits until what each crowd counts satisfies f.
func (m *million) await(what string, f func(i int, c sim.Counts) bool) {
	m.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		ok := true
		for i, c := range m.crowds {
			ok = ok && f(i, c.Counts())
		}
		if ok {
			return
		}
		if time.Now().After(end) {
			m.t.Fatalf("waited in vain for %s: %+v", what, m.crowds[0].Counts())
		}
	}
}

func (m *million) counts() (all []sim.Counts) {
	for _, c := range m.crowds {
		all = append(all, c.Counts())
	}
	return all
}

// script makes the same script for all.
func (m *million) script(b string) (s sim.Script) {
	for _, c := range m.crowds {
		s = c.Script(b)
	}
	return s
}

// send has all but the active clients send s. The first descriptor of each crowd is theirs.
func (m *million) send(s sim.Script) {
	var all sync.WaitGroup
	for _, c := range m.crowds {
		all.Go(func() { c.Send(1, m.n/2+1, s) })
	}
	all.Wait()
}

// calm is step where no goroutine makes calls beside the loops', and checks that no turn does
// too much.
func (m *million) calm(what string, each int, f func()) {
	m.t.Helper()
	if calls := m.step(what, each, f); calls > mostCalls {
		m.t.Errorf("%s: a turn made %d calls, want at most %d", what, calls, mostCalls)
	}
}

// step does something, logs what it has cost for each of so many, and returns how many calls
// the busiest turn made.
func (m *million) step(what string, each int, f func()) (calls int) {
	m.t.Helper()
	for _, c := range m.crowds {
		c.ResetTurns()
	}
	var gc0, gc1 debug.GCStats
	debug.ReadGCStats(&gc0)
	began, used := time.Now(), processorTime()
	f()
	real, cpu := time.Since(began), processorTime()-used
	debug.ReadGCStats(&gc1)
	var sum sim.Counts
	for _, c := range m.crowds {
		n := c.Counts()
		sum.Turns += n.Turns
		sum.Calls, sum.Turn, sum.CPU = max(sum.Calls, n.Calls), max(sum.Turn, n.Turn), max(sum.CPU, n.CPU)
	}
	line := fmt.Sprintf("%-34s %9s, %9s of CPU", what, real.Round(time.Millisecond), cpu.Round(time.Millisecond))
	if each > 0 {
		line += fmt.Sprintf(" (%.2f us each)", float64(cpu.Nanoseconds())/1e3/float64(each))
	}
	m.t.Logf("%s; %d turns, the longest %v, %v of CPU, %d calls at most; %d collections", line,
		sum.Turns, sum.Turn.Round(10*time.Microsecond), sum.CPU.Round(10*time.Microsecond), sum.Calls, gc1.NumGC-gc0.NumGC)
	return sum.Calls
}

// connect connects all, and has each send s and receive something that begins with first.
func (m *million) connect(s sim.Script, first byte) {
	m.t.Helper()
	m.calm("accept", m.n, func() {
		for _, c := range m.crowds {
			c.Dial(m.n / 2)
		}
		m.await("accepts", func(_ int, c sim.Counts) bool { return c.Accepted == m.n/2+1 })
	})
	m.step("first request", m.n, func() {
		before := m.counts()
		m.send(s)
		m.await("responses", func(i int, c sim.Counts) bool { return c.Writes[first]-before[i].Writes[first] >= m.n/2 })
	})
}

// weigh logs what a connection takes, and checks it.
func (m *million) weigh(what string, bytes, objects float64) {
	m.t.Helper()
	heap, count := live()
	perHeap, perCount := float64(heap-m.heap)/float64(m.n), float64(count-m.count)/float64(m.n)
	m.t.Logf("%d %s: %.0f bytes of heap and %.2f objects each", m.n, what, perHeap, perCount)
	if race.Enabled {
		return
	}
	if perHeap > bytes || perCount > objects {
		m.t.Errorf("%.0f bytes and %.2f objects each, want at most %.0f and %.2f", perHeap, perCount, bytes, objects)
	}
	var s debug.GCStats
	began, used := time.Now(), processorTime()
	runtime.GC()
	real, cpu := time.Since(began), processorTime()-used
	debug.ReadGCStats(&s)
	m.t.Logf("a collection: %v, %v of CPU; pause %v", real.Round(time.Millisecond), cpu.Round(time.Millisecond), s.Pause[0])
}

// latency is that of a client that sends one request after the other.
func (m *million) latency(what string, s sim.Script, period time.Duration) (p50, p99 time.Duration) {
	// The medians of many short windows, since other processes run too.
	const windows = 40
	var halves, most []time.Duration
	sent := 0
	for range windows {
		var all []time.Duration
		for end := time.Now().Add(period / windows); time.Now().Before(end); {
			all = append(all, m.crowds[0].Exchange(0, s))
		}
		slices.Sort(all)
		sent += len(all)
		halves, most = append(halves, all[len(all)/2]), append(most, all[len(all)*99/100])
	}
	slices.Sort(halves)
	slices.Sort(most)
	p50, p99 = halves[windows/2], most[windows/2]
	m.t.Logf("an active client %s: %d requests, p50 %v, p99 %v", what, sent, p50, p99)
	return p50, p99
}

// shutdown ends the server.
func (m *million) shutdown() {
	m.t.Helper()
	m.calm("Shutdown", m.n, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if err := m.Shutdown(ctx); err != nil {
			m.t.Fatal(err)
		}
		if err := <-m.ended; !errors.Is(err, http.ErrServerClosed) {
			m.t.Errorf("Serve: %v", err)
		}
	})
	for _, c := range m.crowds {
		if n := c.Counts(); n.Closed != n.Accepted {
			m.t.Errorf("%d of %d connections were closed", n.Closed, n.Accepted)
		}
	}
}

func sizeOfCrowd() int {
	switch {
	case *crowdSize > 0:
		return *crowdSize
	case testing.Short() || race.Enabled:
		return 20_000
	}
	return 200_000
}

const get = "GET / HTTP/1.1\r\nHost: chert.test\r\nUser-Agent: crowd\r\n\r\n"

func hello(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "Hello, World!") }

func TestMillion(t *testing.T) {
	n := sizeOfCrowd()
	second := min(time.Second, time.Duration(n)*5*time.Microsecond)
	t.Run("idle", func(t *testing.T) {
		m := newMillion(t, n, http.HandlerFunc(hello), time.Hour)
		s := m.script(get)
		_, alone := m.latency("alone", s, 2*second)
		m.connect(s, 'H')
		m.calm("the end of the time for a head", 0, func() {
			for end := time.Now().Add(headTime + 30*second); time.Now().Before(end); time.Sleep(second) {
				if _, count := live(); float64(count-m.count) < mostObjects*float64(m.n) {
					break
				}
			}
		})
		m.weigh("idle connections", mostHeap, mostObjects)
		m.step("nothing", 0, func() { time.Sleep(3 * second) })
		_, beside := m.latency("beside them", s, 2*second)
		t.Logf("p99 beside them %.2f of that alone", float64(beside)/float64(alone))
		m.step("Stats", 0, func() { m.Stats() })
		m.step("the oldest connections", 0, func() { m.OpenConnections(100) })
		m.shutdown()
	})
	t.Run("expiry", func(t *testing.T) {
		// A busy machine takes seconds for few of them.
		m := newMillion(t, n, http.HandlerFunc(hello), max(time.Duration(n)*20*time.Microsecond, 5*time.Second))
		s := m.script(get)
		m.connect(s, 'H')
		m.calm("expiry by IdleTimeout", m.n, func() {
			m.await("expiries", func(_ int, c sim.Counts) bool { return c.Closed >= m.n/2 })
		})
		m.shutdown()
	})
	t.Run("websockets", func(t *testing.T) { millionSockets(t, n) })
	t.Run("streams", func(t *testing.T) { millionStreams(t, n) })
}

// millionSockets has WebSockets, which answer Pings.
func millionSockets(t *testing.T, n int) {
	every := max(time.Duration(n)*30*time.Microsecond, time.Second) // 30 s for a million
	ws, err := websocket.New(&websocket.Options{PingInterval: every, OnMessage: func(*websocket.Conn, websocket.Type, []byte) {}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/ws", ws)
	mux.HandleFunc("/", hello)
	m := newMillion(t, n, mux, time.Hour)
	s := m.script("GET /ws HTTP/1.1\r\nHost: chert.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	pong, bye := m.script("\x8a\x80\x00\x00\x00\x00"), m.script("\x88\x82\x00\x00\x00\x00\x03\xe9")
	for _, c := range m.crowds {
		c.Answer(0x89, pong)
		c.Answer(0x88, bye)
	}
	m.connect(s, 'H')
	m.weigh("WebSockets", 1200, 5.2)
	pings := func() (n int) {
		for _, c := range m.crowds {
			n += c.Counts().Writes[0x89]
		}
		return n
	}
	before := pings()
	m.step("Pings, for an interval", m.n, func() { time.Sleep(every) })
	got := pings() - before
	t.Logf("%d Pings of %d clients in %v", got, m.n, every)
	m.step("Pings, until each has one", 0, func() {
		m.await("Pings", func(_ int, c sim.Counts) bool { return c.Writes[0x89] >= m.n/2 })
	})
	m.shutdown()
}

// millionStreams has event streams.
func millionStreams(t *testing.T, n int) {
	news, err := eventstream.NewTopic(nil)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := eventstream.New(&eventstream.Options{Heartbeat: -1, MaxStreams: -1,
		OnOpen: func(s *eventstream.Stream, r *http.Request) { news.Join(s) }})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/events", feed)
	mux.HandleFunc("/", hello)
	m := newMillion(t, n, mux, time.Hour)
	s := m.script("GET /events HTTP/1.1\r\nHost: chert.test\r\nAccept: text/event-stream\r\n\r\n")
	m.connect(s, 'H')
	m.weigh("event streams", 2000, 8.1)
	writes := func(c sim.Counts) (n int) {
		for _, w := range c.Writes {
			n += w
		}
		return n
	}
	before := m.counts()
	m.step("an event to all", m.n, func() {
		if _, err := news.Publish(eventstream.Event{Data: "hello"}); err != nil {
			t.Fatal(err)
		}
		m.await("events", func(i int, c sim.Counts) bool { return writes(c) >= writes(before[i])+m.n/2 })
	})
	m.shutdown()
}
