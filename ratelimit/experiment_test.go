package ratelimit_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/ratelimit"
	"github.com/chert-http/chert/ratelimit/redisstore"
)

// crowd sends requests to addr on connections of its own, concurrently, and
// counts the responses by status. It does not use net/http's client, which would
// take most of the time.
func crowd(t *testing.T, addr string, requests, connections int) (counts map[int]int) {
	t.Helper()
	var all sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(requests))
	var mu sync.Mutex
	counts = make(map[int]int)
	for range connections {
		all.Go(func() {
			own, err := ask(addr, &left)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for status, n := range own {
				counts[status] += n
			}
		})
	}
	all.Wait()
	return counts
}

func ask(addr string, left *atomic.Int64) (counts map[int]int, err error) {
	counts = make(map[int]int)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return counts, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(2 * time.Minute))
	r := bufio.NewReader(c)
	for left.Add(-1) >= 0 {
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			return counts, err
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return counts, err
		}
		io.Copy(io.Discard, res.Body)
		if res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") == "" {
			return counts, fmt.Errorf("429 without Retry-After: %v", res.Header)
		}
		counts[res.StatusCode]++
	}
	return counts, nil
}

// mistakes fails the test with the text that is written to it.
type mistakes struct{ t *testing.T }

func (m mistakes) Write(line []byte) (int, error) {
	m.t.Errorf("logged: %s", line)
	return len(line), nil
}

// Of 10,000 requests from 100 connections a bucket of 1,500 admits 1,500: on
// chert and on net/http, directly and not, with the store of the process and
// with Redis.
func TestExperiment(t *testing.T) {
	t.Parallel()
	hello := direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString("hello") })
	stores := map[string]func(t *testing.T) ratelimit.Store{
		"memory": func(*testing.T) ratelimit.Store { return ratelimit.NewMemory(nil) },
		"redis": func(t *testing.T) ratelimit.Store {
			s, err := redisstore.OpenURL(redistest.Start(t).URL(), &redisstore.Options{
				Timeout: time.Minute, Failure: redisstore.FailureClosed, Logger: slog.New(slog.NewTextHandler(mistakes{t}, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
	}
	for name, store := range stores {
		for _, way := range []string{"direct", "plain", "net/http"} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				var next http.Handler = hello
				if way != "direct" {
					next = http.HandlerFunc(hello.ServeHTTP)
				}
				limit, err := ratelimit.New(&ratelimit.Options{
					Store: store(t), Rules: []ratelimit.Rule{{Name: "all", Rate: ratelimit.Rate{Count: 1, Per: time.Hour, Burst: 1500}}},
				})
				if err != nil {
					t.Fatal(err)
				}
				h := limit(next)
				var addr string
				if way == "net/http" {
					s := httptest.NewServer(h)
					defer s.Close()
					addr = s.Listener.Addr().String()
				} else {
					s := chertest.NewServer(h)
					defer s.Close()
					addr = s.Listener.Addr().String()
				}
				begin := time.Now()
				got := crowd(t, addr, 10000, 100)
				t.Logf("%v in %v", got, time.Since(begin))
				if len(got) != 2 || got[200] != 1500 || got[429] != 8500 {
					t.Errorf("got %v, want 1500 of 200 and 8500 of 429", got)
				}
			})
		}
	}
}
