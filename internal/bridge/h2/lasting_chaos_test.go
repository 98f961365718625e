package h2_test

import (
	"context"
	"fmt"
	"math/rand"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

// outlivers serves WebSockets, event streams and long polls, and counts those that have
// begun and not ended.
type outlivers struct {
	*http.ServeMux
	open  atomic.Int64
	topic *eventstream.Topic
	polls *eventstream.PollHandler
}

func newOutlivers() *outlivers {
	o := &outlivers{ServeMux: http.NewServeMux(), topic: must(eventstream.NewTopic(nil))}
	began := func(c *websocket.Conn, r *http.Request) {
		o.open.Add(1)
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		switch {
		case n%7 == 0:
			go func() { // beside what its code sends
				for c.Send(websocket.TypeBinary, make([]byte, n%30_000)) == nil && !c.Congested() {
				}
				c.Close(4000, "enough")
			}()
		case n%11 == 0:
			panic(http.ErrAbortHandler)
		case n%13 == 0:
			runtime.Goexit()
		}
	}
	message := func(c *websocket.Conn, typ websocket.Type, p []byte) {
		switch len(p) % 8 {
		case 0:
			c.Write(context.Background(), typ, append(make([]byte, 10*len(p)), p...))
		case 1:
			time.Sleep(time.Millisecond)
		case 2:
			c.Close(4001, "")
		case 3:
			panic(http.ErrAbortHandler)
		default:
			c.Send(typ, p)
		}
	}
	o.Handle("/ws", must(websocket.New(&websocket.Options{
		OnOpen: began, OnMessage: message, MaxUnsent: 64 << 10,
		OnClose: func(*websocket.Conn, websocket.Code, string) { o.open.Add(-1) },
	})))
	o.Handle("/events", must(eventstream.New(&eventstream.Options{
		OnOpen: func(s *eventstream.Stream, r *http.Request) {
			o.open.Add(1)
			o.topic.Join(s)
			n, _ := strconv.Atoi(r.URL.Query().Get("n"))
			if n%3 == 0 {
				time.Sleep(time.Duration(n%3000) * time.Microsecond)
			}
			if n%5 == 0 {
				go s.Close()
			}
		},
		OnClose:   func(*eventstream.Stream) { o.open.Add(-1) },
		MaxUnsent: 2000,
	})))
	o.polls = must(eventstream.NewPoll(&eventstream.PollOptions{
		OnOpen:  func(p *eventstream.Poll, r *http.Request) { o.open.Add(1) },
		OnClose: func(*eventstream.Poll) { o.open.Add(-1) },
	}))
	o.Handle("/poll", o.polls)
	o.HandleFunc("/", hello)
	return o
}

// outlive is a client of them that keeps to the protocol, and leaves streams in every way.
func (c *lawful) outlive(rnd *rand.Rand, steps int) {
	c.window = 65535
	c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: []uint32{0, 1, 1000, 65535, 1 << 20}[rnd.Intn(5)]})
	id := uint32(1)
	var tunnels []uint32
	defer func() {
		for st := uint32(1); st < id; st += 2 {
			c.fr.WriteRSTStream(st, http2.ErrCodeCancel)
		}
		c.roundTrip()
	}()
	send := func(st uint32, end bool, p string) {
		if len(p) <= c.window {
			c.window -= len(p)
			c.fr.WriteData(st, end, []byte(p))
		}
	}
	for range steps {
		switch n := rnd.Intn(100_000); rnd.Intn(10) {
		case 0, 1, 2:
			c.headers(id, false, with(connect[:4], fmt.Sprintf(":path: /ws?n=%d", n), connect[5])...)
			tunnels = append(tunnels, id)
			id += 2
		case 3, 4:
			c.headers(id, true, path(get, fmt.Sprintf("/events?n=%d", n))...)
			id += 2
		case 5:
			c.headers(id, true, path(get, "/poll")...)
			id += 2
		case 6:
			c.headers(id, true, get...)
			id += 2
		case 7:
			if id > 1 {
				c.fr.WriteRSTStream(uint32(rnd.Intn(int(id)-1))|1, http2.ErrCodeCancel)
			}
		case 8:
			c.fr.WriteWindowUpdate(0, uint32(1+rnd.Intn(60_000)))
			if id > 1 {
				c.fr.WriteWindowUpdate(uint32(rnd.Intn(int(id)-1))|1, uint32(1+rnd.Intn(60_000)))
			}
		case 9:
			c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: []uint32{0, 1, 1000, 65535, 1 << 20}[rnd.Intn(5)]})
		}
		for range rnd.Intn(4) {
			if len(tunnels) == 0 {
				break
			}
			st := tunnels[rnd.Intn(len(tunnels))]
			switch rnd.Intn(12) {
			case 0:
				send(st, false, message(wsframe.Close, "\x03\xe8"))
			case 1:
				send(st, true, "")
			case 2:
				send(st, false, message(wsframe.Ping, "ping"))
			case 3:
				send(st, false, "junk that is no frame")
			default:
				m := message(wsframe.Binary, string(make([]byte, rnd.Intn(3000))))
				k := rnd.Intn(len(m))
				send(st, false, m[:k])
				send(st, false, m[k:])
			}
		}
		if c.send(); rnd.Intn(3) == 0 {
			c.roundTrip()
		}
	}
	c.roundTrip()
}

// Whatever clients do with what outlives handlers: it ends, others are served, and windows
// come back.
func TestChaosOfOutlivers(t *testing.T) {
	t.Parallel()
	rounds, _ := strconv.Atoi(os.Getenv("CHERT_CHAOS"))
	each(t, "oracle", func(t *testing.T, kind string) {
		o := newOutlivers()
		s := serve(t, kind, &chert.Server{Handler: o, ExtendedConnect: true})
		stop := make(chan bool)
		var beside sync.WaitGroup
		defer beside.Wait()
		defer close(stop)
		// A client that returns its window with each frame stays within the budget of those that do nothing if a frame
		// is worth something, however long the machine takes for the test.
		event := eventstream.Event{Data: "an event of some bytes" + strings.Repeat(".", 512)}
		beside.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				o.topic.Publish(event)
				o.polls.AnswerAll([]byte("answer"))
				time.Sleep(100 * time.Microsecond) // not faster than clients take
			}
		})
		for range max(rounds, 1) {
			seed := time.Now().UnixNano()
			var all sync.WaitGroup
			for i := range int64(6) {
				c := &lawful{raw: s.raw()}
				rnd := rand.New(rand.NewSource(seed + i))
				all.Go(func() {
					defer c.Close()
					if i%2 == 0 {
						time.AfterFunc(time.Duration(rnd.Intn(100))*time.Millisecond, func() { c.Close() })
					}
					if c.outlive(rnd, 60); i%2 == 0 {
						return
					}
					if rnd.Intn(2) == 0 {
						c.fr.WriteGoAway(0, http2.ErrCodeNo, nil)
					}
					if err := c.refunded(); err != nil {
						t.Errorf("seed %d: the window is %d, %v", seed, c.window, err)
					}
				})
			}
			all.Wait()
			servertest.Eventually(t, fmt.Sprintf("all have ended (seed %d)", seed), func() bool { return o.open.Load() == 0 })
			if a := s.raw().get(1, "/"); a.body != "hello" {
				t.Errorf("another client: %+v", a)
			}
		}
	})
}

// A server that stops while they come, work and go ends them all.
func TestShutdownOfOutlivers(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		o := newOutlivers()
		s := serve(t, kind, &chert.Server{Handler: o, ExtendedConnect: true, WriteStallTimeout: time.Second})
		seed := time.Now().UnixNano()
		var all sync.WaitGroup
		begun := make(chan bool, 8)
		for i := range int64(8) {
			c := &lawful{raw: s.raw()}
			all.Go(func() {
				defer c.Close()
				c.roundTrip()
				begun <- true
				c.outlive(rand.New(rand.NewSource(seed+i)), 60)
				for c.err == nil { // it has to go by itself
					c.takes()
				}
			})
		}
		for range 8 {
			servertest.Await(t, begun, "a connection")
		}
		o.topic.Publish(eventstream.Event{Data: "an event"})
		ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		all.Wait()
		servertest.Eventually(t, fmt.Sprintf("all have ended (seed %d)", seed), func() bool { return o.open.Load() == 0 })
	})
}
