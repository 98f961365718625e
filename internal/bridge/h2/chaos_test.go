package h2_test

import (
	"context"
	"encoding/binary"
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

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// chaos answers in every way that a handler can.
func chaos(running *atomic.Int64) http.Handler {
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

// mischief is a client that does anything at any time, legal or nearly so.
func (c *raw) mischief(rnd *rand.Rand, steps int) {
	paths := []string{"/", "/large", "/pieces", "/echo", "/ignore", "/panic", "/deadline", "/context"}
	id := uint32(1)
	open := map[uint32]bool{} // those that may be sent bodies
	some := func() uint32 { return uint32(rnd.Intn(int(id)+1)) | 1 }
	for range steps {
		for range 1 + rnd.Intn(12) {
			switch rnd.Intn(12) {
			case 0, 1, 2, 3:
				if id > 1 && rnd.Intn(2) == 0 {
					id += 2
				}
				p := paths[rnd.Intn(len(paths))]
				end := rnd.Intn(3) > 0
				f := path(get, fmt.Sprintf("%s?n=%d", p, rnd.Intn(100_000)))
				if !end {
					f[0] = ":method: POST"
				}
				if rnd.Intn(3) == 0 {
					f = with(f, fmt.Sprintf("priority: u=%d, i=?%d", rnd.Intn(8), rnd.Intn(2)))
				}
				c.headers(id, end, f...)
				if !end {
					open[id] = true
				}
				if p == "/context" {
					c.fr.WriteRSTStream(id, 8)
					delete(open, id)
				}
				id += 2
			case 4, 5:
				for st := range open {
					end := rnd.Intn(4) == 0
					c.fr.WriteData(st, end, make([]byte, rnd.Intn(2000)+1))
					if end {
						delete(open, st)
					}
					break
				}
			case 6:
				if st := some(); st < id {
					c.fr.WriteRSTStream(st, 8)
					delete(open, st)
				}
			case 7:
				c.fr.WriteWindowUpdate(0, uint32(1+rnd.Intn(60_000)))
			case 8:
				if st := some(); st < id {
					c.fr.WriteWindowUpdate(st, uint32(1+rnd.Intn(60_000)))
				}
			case 9:
				c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: []uint32{0, 1, 1000, 65535, 1 << 20}[rnd.Intn(5)]})
			case 10:
				var b []byte
				c.fr.WriteRawFrame(0x10, 0, 0, append(binary.BigEndian.AppendUint32(b, some()), fmt.Sprintf("u=%d", rnd.Intn(8))...))
			case 11:
				c.fr.WritePing(false, [8]byte{})
			}
		}
		p := append([]byte(nil), c.out.Bytes()...)
		c.out.Reset()
		for len(p) > 0 { // in pieces that end within frames
			n := min(len(p), 1+rnd.Intn(4000))
			if _, err := c.Write(p[:n]); err != nil {
				return
			}
			p = p[n:]
		}
	}
	if rnd.Intn(3) == 0 {
		c.fr.WriteGoAway(0, 0, nil)
		c.send()
	}
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
			var running atomic.Int64
			s := serve(t, kind, &chert.Server{
				Handler: chaos(&running), MaxHandlers: limit, QueueLength: 50 * limit, ReuseRequests: limit == 0,
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
							res.Body.Close()
						}
						cancel()
					}
				})
				all.Wait()
				servertest.Eventually(t, fmt.Sprintf("all handlers have ended (round %d, seed %d)", round, seed), func() bool { return running.Load() == 0 })
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
