package h2_test

import (
	"context"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// chaos answers in every way that a handler can: plain ones, and direct ones, of which
// all but some have the plain one answer.
type chaos struct {
	http.Handler
	file *os.File // of 100,000 bytes
	open *atomic.Int64
}

// ServeDirect implements direct.Handler.
func (h chaos) ServeDirect(x *direct.Exchange) bool {
	n, _ := strconv.Atoi(string(x.QueryValue("n")))
	switch string(x.Path()) {
	case "/direct":
		x.Write(make([]byte, n))
	case "/file":
		h.open.Add(1)
		x.SendFile(direct.File{File: h.file, Len: int64(n), Done: func() { h.open.Add(-1) }})
	case "/slow":
		h.open.Add(1)
		x.SendFile(direct.File{File: h.file, Len: int64(n % 3000), Done: func() { h.open.Add(-1) }})
		time.Sleep(time.Duration(n%4) * time.Millisecond)
	default:
		return false
	}
	return true
}

func chaosHandler(running *atomic.Int64) http.Handler {
	return hf(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		switch r.URL.Path {
		case "/large":
			io.WriteString(w, strings.Repeat("x", n))
		case "/pieces":
			for range 20 {
				w.Write(make([]byte, n/20))
				if n%3 == 0 {
					http.NewResponseController(w).Flush()
				}
			}
		case "/echo":
			http.NewResponseController(w).EnableFullDuplex()
			io.Copy(w, r.Body)
			w.Header().Set(http.TrailerPrefix+"X-End", "1")
		case "/ignore":
			io.WriteString(w, "no")
		case "/context":
			<-r.Context().Done()
		case "/panic":
			w.Write(make([]byte, n))
			panic(http.ErrAbortHandler)
		case "/deadline":
			rc := http.NewResponseController(w)
			rc.SetReadDeadline(time.Now().Add(time.Millisecond))
			rc.SetWriteDeadline(time.Now().Add(time.Millisecond))
			io.Copy(io.Discard, r.Body)
			w.Write(make([]byte, n))
		default:
			hello(w, r)
		}
	})
}

// Whatever clients do, at whatever time: all handlers end, all slots come back, and
// others are served.
func TestChaos(t *testing.T) {
	t.Parallel()
	rounds, _ := strconv.Atoi(os.Getenv("CHERT_CHAOS"))
	if rounds = max(rounds, 1); testing.Short() {
		rounds = 1
	}
	each(t, "oracle", func(t *testing.T, kind string) {
		for _, limit := range []int{0, 8} {
			var running, open atomic.Int64
			s := serve(t, kind, &chert.Server{
				Handler: chaos{chaosHandler(&running), fileOf(t, 100_000), &open}, MaxHandlers: limit, QueueLength: 50 * limit,
				WriteStallTimeout: 2 * time.Second, ReadStallTimeout: 2 * time.Second,
			})
			for round := range rounds {
				seed := time.Now().UnixNano()
				var all sync.WaitGroup
				for i := range int64(6) {
					c := s.raw()
					rnd := rand.New(rand.NewSource(seed + i))
					read, reads, half := make(chan bool), rnd.Intn(4) > 0, rnd.Intn(2) == 0
					all.Go(func() {
						if reads {
							io.Copy(io.Discard, c.Conn)
						}
						close(read)
					})
					all.Go(func() {
						c.mischief(rnd, 60)
						if conn, ok := c.Conn.(interface{ CloseWrite() error }); half && ok {
							conn.CloseWrite()
						} else {
							c.Close()
						}
						<-read
						c.Close()
					})
				}
				for i := range int64(3) {
					rnd := rand.New(rand.NewSource(seed + 100 + i))
					all.Go(func() { s.vandal(rnd, 5) })
				}
				one := &lawful{raw: s.raw()}
				all.Go(func() { one.run(rand.New(rand.NewSource(seed+200)), 40) })
				// One that behaves.
				all.Go(func() {
					cl := s.client()
					for k := range 20 {
						ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
						want := strings.Repeat("y", 1+k*3000)
						res, err := cl.Do(must(http.NewRequestWithContext(ctx, "POST", s.url("/echo"), strings.NewReader(want))))
						if err != nil {
							t.Errorf("seed %d: %v", seed, err)
						} else {
							got, err := io.ReadAll(res.Body)
							if res.StatusCode == 200 && (string(got) != want || err != nil) {
								t.Errorf("seed %d: %d of %d bytes, %v", seed, len(got), len(want), err)
							}
							if res.StatusCode != 200 && (limit == 0 || res.StatusCode != 503) {
								t.Errorf("seed %d: status %d", seed, res.StatusCode)
							}
							res.Body.Close()
						}
						cancel()
					}
				})
				all.Wait()
				servertest.Eventually(t, fmt.Sprintf("all handlers have ended (round %d, seed %d)", round, seed), func() bool { return running.Load() == 0 })
				servertest.Eventually(t, fmt.Sprintf("all files are given back (round %d, seed %d)", round, seed), func() bool { return open.Load() == 0 })
				if err := one.refunded(); err != nil {
					t.Errorf("seed %d: the window is %d, %v", seed, one.window, err)
				}
				one.Close()
			}
			// All slots are there.
			for i := range limit {
				c := s.raw()
				if a := c.get(1, fmt.Sprint("/?", i)); a.outcome() != "200" {
					t.Errorf("afterwards: %+v", a)
				}
				c.Close()
			}
		}
	})
}
