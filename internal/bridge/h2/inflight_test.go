package h2_test

import (
	"math/rand"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
)

// This file is that middleware.InFlight counts each request of a client until it has ended,
// however that is, and not longer: one that is never given back is lost to the client for good.

// fastOrNot is a handler with a fast path that declines some requests.
type fastOrNot struct {
	http.Handler
	direct func(x *direct.Exchange) bool
}

// ServeDirect implements direct.Handler.
func (h fastOrNot) ServeDirect(x *direct.Exchange) bool { return h.direct(x) }

// around is middleware outside of InFlight, each kind of which has something to do with
// watchers or with responses that are replaced.
func around(t *testing.T, h http.Handler) http.Handler {
	t.Helper()
	outer := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: new(logBuffer), BufferSize: -1})
	inner := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: new(logBuffer), BufferSize: -1, Format: middleware.LogJSON})
	t.Cleanup(func() { outer.Close(); inner.Close() })
	h = inner.Override(h)
	h = must(middleware.Headers(&middleware.HeadersOptions{Rules: []middleware.HeaderRule{
		{Set: map[string]string{"X-A": "1"}}, {Status: []int{4, 5}, Set: map[string]string{"X-B": "1"}}}}))(h)
	page := &middleware.ErrorPage{Body: []byte("{status} {request_id}"), Template: true}
	h = must(middleware.ErrorPages(&middleware.ErrorPagesOptions{Pages: map[int]*middleware.ErrorPage{0: page}}))(h)
	h = must(middleware.Compress(nil))(middleware.ETag(nil)(h))
	return outer.Wrap(h)
}

// held waits until a client may have n requests at a time, which is all that it may.
func (r *running) held(n int) {
	r.t.Helper()
	servertest.Eventually(r.t, "all that were counted have been given back", func() bool {
		c := r.raw()
		defer c.Close()
		for i := range uint32(n) {
			c.headers(2*i+1, true, path(get, "/held")...)
		}
		c.send()
		for range n {
			for {
				f := c.next()
				if f == nil {
					return false
				}
				if h, ok := f.(*http2.HeadersFrame); ok {
					all, err := c.dec.DecodeFull(h.HeaderBlockFragment())
					if err != nil || all[0].Value != "200" {
						return false
					}
					break
				}
			}
		}
		return true
	})
}

// heldOr is h with what held asks for, within a limit of n.
func heldOr(n int, h fastOrNot) http.Handler {
	limit := middleware.InFlight(&middleware.InFlightOptions{Max: -1, PerClient: n})
	return limit(fastOrNot{
		hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/held" {
				http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			h.ServeHTTP(w, r)
		}),
		func(x *direct.Exchange) bool { return string(x.Path()) != "/held" && h.direct(x) },
	})
}

// Requests of every kind, by clients that do anything at any time.
func TestInFlightChaos(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		const limit = 200
		var running, open atomic.Int64
		file := fileOf(t, 100_000)
		c := chaos{chaosHandler(&running), file, &open}
		s := serve(t, kind, &chert.Server{Handler: around(t, heldOr(limit, fastOrNot{c, c.ServeDirect})),
			WriteStallTimeout: 2 * time.Second, ReadStallTimeout: 2 * time.Second})
		seed := time.Now().UnixNano()
		var all sync.WaitGroup
		for i := range int64(4) {
			c := s.raw()
			rnd := rand.New(rand.NewSource(seed + i))
			all.Go(func() {
				c.mischief(rnd, 60)
				c.Close()
			})
			all.Go(func() { s.vandal(rand.New(rand.NewSource(seed+100+i)), 5) })
		}
		all.Go(func() {
			one := &lawful{raw: s.raw()}
			one.run(rand.New(rand.NewSource(seed+200)), 40)
			one.Close()
		})
		all.Wait()
		t.Logf("seed %d", seed)
		s.held(limit)
	})
}

// WebSockets, event streams and long polls.
func TestInFlightOfOutlivers(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		const limit = 200
		o := newOutlivers()
		s := serve(t, kind, &chert.Server{ExtendedConnect: true, WriteStallTimeout: 2 * time.Second,
			Handler: around(t, heldOr(limit, fastOrNot{o, func(*direct.Exchange) bool { return false }}))})
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
				c.outlive(rnd, 60)
			})
		}
		o.topic.Publish(eventstream.Event{Data: strings.Repeat(".", 512)})
		o.polls.AnswerAll([]byte("answer"))
		all.Wait()
		t.Logf("seed %d", seed)
		s.held(limit)
	})
}
