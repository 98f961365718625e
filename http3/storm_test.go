package http3_test

import (
	"context"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/eventstream"
	chert3 "github.com/chert-http/chert/http3"
	"github.com/chert-http/chert/internal/testing/leak"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/websocket"
)

const patternSize = 1 << 17

// pattern is what bodies are made of: a body of n bytes is the end of it, so that no two lengths are the same anywhere.
var pattern = func() string {
	b := make([]byte, patternSize)
	rand.New(rand.NewSource(1)).Read(b)
	return string(b)
}()

func patterned(n int) string { return pattern[patternSize-n:] }

// stormHandler answers in every way that a handler can, and counts what has begun and not ended.
type stormHandler struct {
	*http.ServeMux
	t             testing.TB
	file          *os.File // the pattern
	running, most atomic.Int64
	files, open   atomic.Int64
	meet          chan chan bool
	topic         *eventstream.Topic
	polls         *eventstream.PollHandler
}

// ServeDirect implements direct.Handler.
func (h *stormHandler) ServeDirect(x *direct.Exchange) bool {
	n, _ := strconv.Atoi(string(x.QueryValue("n")))
	switch string(x.Path()) {
	case "/direct":
		x.WriteString(patterned(n))
	case "/file":
		h.files.Add(1)
		x.SendFile(direct.File{File: h.file, Offset: int64(patternSize - n), Len: int64(n), Done: func() { h.files.Add(-1) }})
	case "/slow": // keeps the leader
		x.WriteString(patterned(n))
		time.Sleep(time.Duration(n%4) * time.Millisecond)
	case "/direct/panic":
		x.WriteString(patterned(n))
		panic(http.ErrAbortHandler)
	case "/direct/exit":
		time.Sleep(time.Duration(n%4) * time.Millisecond)
		runtime.Goexit()
	default:
		return false
	}
	return true
}

// handle answers requests for a path, whose n is how much is to be sent.
func (h *stormHandler) handle(path string, f func(w http.ResponseWriter, r *http.Request, n int)) {
	h.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		now := h.running.Add(1)
		for most := h.most.Load(); now > most && !h.most.CompareAndSwap(most, now); most = h.most.Load() {
		}
		defer h.running.Add(-1)
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		f(w, r, n)
	})
}

// pieces sends n bytes, size at a time.
func pieces(w http.ResponseWriter, n, size int) {
	for rest := patterned(n); len(rest) > 0; rest = rest[min(size, len(rest)):] {
		io.WriteString(w, rest[:min(size, len(rest))])
		if n%3 == 0 {
			http.NewResponseController(w).Flush()
		}
	}
}

func newStormHandler(t testing.TB) *stormHandler {
	h := &stormHandler{ServeMux: http.NewServeMux(), t: t, meet: make(chan chan bool)}
	name := filepath.Join(t.TempDir(), "file")
	err := os.WriteFile(name, []byte(pattern), 0o600)
	if err == nil {
		h.file, err = os.Open(name)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.file.Close() })
	h.whole()
	h.cut()
	h.lasting()
	return h
}

// whole has answers that come to their end, unless the client's part does not.
func (h *stormHandler) whole() {
	h.handle("/", func(w http.ResponseWriter, _ *http.Request, n int) { io.WriteString(w, patterned(n)) })
	h.handle("/pieces", func(w http.ResponseWriter, _ *http.Request, n int) { pieces(w, n, n/20+1) })
	h.handle("/length", func(w http.ResponseWriter, _ *http.Request, n int) {
		w.Header().Set("Content-Length", strconv.Itoa(n))
		pieces(w, n, 5000)
	})
	h.handle("/trailers", func(w http.ResponseWriter, _ *http.Request, n int) {
		pieces(w, n, 3000)
		w.Header().Set(http.TrailerPrefix+"X-End", "1")
	})
	h.handle("/hints", func(w http.ResponseWriter, _ *http.Request, n int) {
		for range n % 5 { // clients of quic-go take no more
			w.WriteHeader(http.StatusEarlyHints)
		}
		io.WriteString(w, patterned(n))
	})
	h.handle("/echo", func(w http.ResponseWriter, r *http.Request, n int) {
		http.NewResponseController(w).EnableFullDuplex()
		if _, err := io.Copy(w, r.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	})
	h.handle("/takes", func(w http.ResponseWriter, _ *http.Request, n int) {
		if _, _, err := http.NewResponseController(w).Hijack(); err == nil {
			h.t.Error("a stream is hijacked")
		}
		io.WriteString(w, patterned(n))
	})
	h.handle("/deadline", func(w http.ResponseWriter, r *http.Request, n int) {
		rc := http.NewResponseController(w)
		rc.SetReadDeadline(time.Now().Add(time.Millisecond))
		rc.SetWriteDeadline(time.Now().Add(time.Millisecond))
		io.Copy(io.Discard, r.Body)
		pieces(w, n, 10_000)
	})
	h.handle("/meet", func(_ http.ResponseWriter, r *http.Request, _ int) {
		all := make(chan bool)
		h.meet <- all
		<-all
	})
}

// cut has answers that do not.
func (h *stormHandler) cut() {
	h.handle("/context", func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() })
	h.handle("/panic", func(w http.ResponseWriter, _ *http.Request, n int) {
		io.WriteString(w, patterned(n))
		panic(http.ErrAbortHandler)
	})
	h.handle("/exit", func(w http.ResponseWriter, _ *http.Request, n int) {
		io.WriteString(w, patterned(n))
		runtime.Goexit()
	})
	h.Handle("/direct/panic", http.NotFoundHandler())
	h.Handle("/direct/exit", http.NotFoundHandler())
}

// lasting has what outlives handlers.
func (h *stormHandler) lasting() {
	topic, err := eventstream.NewTopic(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.topic = topic
	sockets, err := websocket.New(&websocket.Options{
		MaxUnsent: 64 << 10, OnOpen: h.opened, OnMessage: answers,
		OnClose: func(*websocket.Conn, websocket.Code, string) { h.open.Add(-1) },
	})
	if err != nil {
		h.t.Fatal(err)
	}
	streams, err := eventstream.New(&eventstream.Options{
		MaxUnsent: 2000,
		OnOpen: func(s *eventstream.Stream, r *http.Request) {
			h.open.Add(1)
			h.topic.Join(s)
			if n, _ := strconv.Atoi(r.URL.Query().Get("n")); n%5 == 0 {
				go s.Close()
			}
		},
		OnClose: func(*eventstream.Stream) { h.open.Add(-1) },
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.polls, err = eventstream.NewPoll(&eventstream.PollOptions{
		OnOpen:  func(*eventstream.Poll, *http.Request) { h.open.Add(1) },
		OnClose: func(*eventstream.Poll) { h.open.Add(-1) },
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.Handle("/ws", sockets)
	h.Handle("/events", streams)
	h.Handle("/poll", h.polls)
}

// opened is called for each WebSocket.
func (h *stormHandler) opened(c *websocket.Conn, r *http.Request) {
	h.open.Add(1)
	switch n, _ := strconv.Atoi(r.URL.Query().Get("n")); {
	case n%11 == 0:
		panic(http.ErrAbortHandler)
	case n%13 == 0:
		runtime.Goexit()
	case n%7 == 0: // beside what its code sends
		go func() {
			for c.Send(websocket.TypeBinary, []byte(patterned(n%3000))) == nil && !c.Congested() {
			}
			c.Close(4000, "enough")
		}()
	}
}

// answers is called for each message.
func answers(c *websocket.Conn, typ websocket.Type, p []byte) {
	switch len(p) % 16 {
	case 0:
		c.Close(4001, "")
	case 1:
		panic(http.ErrAbortHandler)
	default:
		c.Write(context.Background(), typ, p)
	}
}

// publish sends events to the streams that are open and answers the requests that wait, until stop is closed.
func (h *stormHandler) publish(stop chan bool) {
	event := eventstream.Event{Data: strings.Repeat("an event ", 30)}
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond): // not faster than clients take
		}
		h.topic.Publish(event)
		h.polls.AnswerAll([]byte("answer"))
	}
}

// left is what has not ended.
func (h *stormHandler) left(s *running) string {
	n := s.Stats()
	c := n.Connections
	all := [...]int64{
		h.running.Load(), h.files.Load(), h.open.Load(), c.Open, c.HTTP3, c.WebSockets, c.EventStreams, n.Running, n.Waiting,
		n.TLS.Running, n.BufferBytes, int64(c.Accepted - c.Closed),
	}
	if all == [len(all)]int64{} {
		return ""
	}
	return fmt.Sprintf("handlers %d, files %d, lasting %d, connections %d, HTTP/3 %d, WebSockets %d, event streams %d, "+
		"running %d, waiting %d, handshakes %d, bytes of buffers %d, not closed %d", all[0], all[1], all[2], all[3], all[4], all[5],
		all[6], all[7], all[8], all[9], all[10], all[11])
}

// stormProcess is what the process has, of its own and of the transport's.
type stormProcess struct {
	goroutines, files int
	heap              uint64
}

func measure() stormProcess {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools keep
	runtime.ReadMemStats(&m)
	return stormProcess{runtime.NumGoroutine(), len(leak.OpenFiles()), m.HeapAlloc}
}

// TestStorm has clients come over bad paths, which do whatever clients can at whatever time and leave in every way,
// beside one that behaves: what they get is right to the last byte, and when all have gone nothing of them is left.
// CHERT_CHAOS is the number of rounds. Not beside other tests: it measures the process.
func TestStorm(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("CHERT_CHAOS"))
	if err != nil {
		rounds = 1
	}
	for _, limit := range []int{0, 8} {
		h := newStormHandler(t)
		s := serve(t, &chert.Server{
			Handler: h, MaxHandlers: limit, QueueLength: 50 * limit, ExtendedConnect: true,
			HTTP3: chert3.New(&chert3.Options{EarlyData: true}), ReadHeaderTimeout: 15 * time.Second,
		})
		first, same, left := measure(), true, ""
		t.Cleanup(func() {
			if !same {
				t.Log(left)
			}
		})
		for round := range rounds {
			if !t.Run(fmt.Sprintf("limit %d, round %d", limit, round), func(t *testing.T) {
				h.storm(t, s.at(t), int64(1000*limit+round), limit)
			}) {
				return
			}
			servertest.Eventually(t, "the process has what it had", func() bool {
				now := measure()
				same = now.goroutines <= first.goroutines+8 && now.files <= first.files && now.heap <= first.heap+32<<20
				left = fmt.Sprintf("before %+v, after round %d %+v", first, round, now)
				return same
			})
		}
	}
}

// storm is a round.
func (h *stormHandler) storm(t *testing.T, s *running, seed int64, limit int) {
	stop := make(chan bool)
	var beside sync.WaitGroup
	beside.Go(func() { h.publish(stop) })
	s.storm(seed, limit > 0)
	close(stop)
	beside.Wait()
	left := ""
	defer func() {
		if left != "" {
			t.Log(left)
		}
	}()
	servertest.Eventually(t, "all has ended", func() bool { left = h.left(s); return left == "" })
	h.allSlots(s, limit)
	if most := h.most.Load(); limit > 0 && most > int64(limit) {
		t.Errorf("%d handlers ran at once", most)
	}
}

// allSlots checks that as many handlers run at a time as may.
func (h *stormHandler) allSlots(s *running, limit int) {
	c := s.raw()
	var all []*exchange
	for range limit {
		all = append(all, c.open(true, headers(path(get, "/meet")...)))
	}
	var met []chan bool
	for range limit {
		met = append(met, servertest.Await(s.t, h.meet, "a handler"))
	}
	for _, m := range met {
		close(m)
	}
	for _, e := range all {
		if a := e.read(); a.ending() != "200" {
			s.t.Errorf("afterwards: %+v", a)
		}
	}
	c.CloseWithError(0x100, "")
	servertest.Eventually(s.t, "it has gone", func() bool { return s.Stats().Connections.Open == 0 })
}
