package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/router"
)

// A trouble is a server and what its clients do. With fix the server is one that copes with them.
type trouble struct {
	name, about, look string
	server            func(fix bool) *chert.Server // dir is empty
	load              func(clients)
}

var troubles = []trouble{
	{"route", "one route of many is slow", `
Routes: GET /report is at the top, with nearly all of the time in handlers; its placement is pooled, so
the others keep their latency. "Running longest" has its requests.`, routeServer, func(c clients) {
		c.each(16, "/users/7", 5*time.Millisecond)
		c.each(8, "/report", 20*time.Millisecond)
	}},
	{"clients", "clients accept their responses slowly", `
"Running longest" has requests of GET /export in the stage "write": the handler waits until its client has accepted what
it writes. If the handler has returned already, "rest of the
response" in "Latency by stage" takes seconds instead.`, clientsServer, func(c clients) {
		c.each(16, "/users/7", 5*time.Millisecond)
		c.slow(20, "/export", 2<<20)
	}},
	{"slots", "MaxHandlers is too low for the load", `
"Handlers running" stands still at MaxHandlers while others wait, and "slot or goroutine" takes as much time as
the handlers or more. The processors are not busy.`, slotsServer, func(c clients) {
		c.each(64, "/query", 0)
	}},
	{"lock", "handlers wait for one mutex", `
"Waits for mutexes" is several seconds in each second, the handlers' latency grows with the number of clients, and
the processors are not busy. debug/pprof/mutex?seconds=5 names the lock.`, lockServer, func(c clients) {
		c.each(32, "/counter", 0)
	}},
	{"collector", "the garbage collector takes the processors' time", `
"Garbage collector" has its part of the processors' time, with many collections in each second and how much memory is
allocated; every route is slower. debug/pprof/allocs names what allocates.`, collectorServer, func(c clients) {
		c.each(8, "/render", 0)
		c.each(4, "/users/7", 5*time.Millisecond)
	}},
}

// users adds a quick route, to compare others with.
func users(r *router.Router) {
	r.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "user %s\n", r.PathValue("id")) })
}

func routeServer(fix bool) *chert.Server {
	r := router.New()
	users(r)
	wait := 250 * time.Millisecond // for a database
	if fix {
		wait = 0
	}
	r.HandleFunc("GET /report", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(wait)
		io.WriteString(w, "the report\n")
	})
	return &chert.Server{Handler: r}
}

func clientsServer(fix bool) *chert.Server {
	size := 16 << 20 // more than the buffers of the system hold
	if fix {
		size = 16 << 10
	}
	export := bytes.Repeat([]byte("export\n"), size/7)
	r := router.New()
	users(r)
	r.HandleFunc("GET /export", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(export)))
		w.Write(export) // waits for the client
	})
	return &chert.Server{Handler: r}
}

func slotsServer(fix bool) *chert.Server {
	r := router.New()
	r.HandleFunc("GET /query", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(40 * time.Millisecond) // a database that could serve many more
		io.WriteString(w, "rows\n")
	})
	srv := &chert.Server{Handler: r, MaxHandlers: 16, QueueLength: 256}
	if fix {
		srv.MaxHandlers = 128
	}
	return srv
}

func lockServer(fix bool) *chert.Server {
	var mu sync.Mutex
	var n int
	r := router.New()
	r.HandleFunc("GET /counter", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		now := n
		if !fix {
			time.Sleep(2 * time.Millisecond) // a write to a file, which the lock need not include
		}
		mu.Unlock()
		if fix {
			time.Sleep(2 * time.Millisecond)
		}
		fmt.Fprintln(w, now)
	})
	return &chert.Server{Handler: r}
}

// node is something that the collector must follow.
type node struct{ left, right *node }

func tree(depth int) *node {
	if depth == 0 {
		return nil
	}
	return &node{tree(depth - 1), tree(depth - 1)}
}

func collectorServer(fix bool) *chert.Server {
	live := tree(21)            // 2 million objects
	debug.SetGCPercent(25)      // as a program that has little memory
	depth, once := 15, tree(15) // for each response
	if fix {
		debug.SetGCPercent(400)
	}
	r := router.New()
	users(r)
	r.HandleFunc("GET /render", func(w http.ResponseWriter, r *http.Request) {
		page := once
		if !fix {
			page = tree(depth)
		}
		fmt.Fprintln(w, page != nil, live != nil)
	})
	return &chert.Server{Handler: r}
}

// clients send requests until the context ends.
type clients struct {
	ctx  context.Context
	addr string
}

// each lets n clients send one request after another, with a pause.
func (c clients) each(n int, path string, pause time.Duration) {
	tr := &http.Transport{MaxIdleConnsPerHost: n}
	for range n {
		go func() {
			for c.ctx.Err() == nil {
				req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, "http://"+c.addr+path, nil)
				if err != nil {
					panic(err) // the path is ours
				}
				if res, err := tr.RoundTrip(req); err == nil {
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				time.Sleep(pause)
			}
		}()
	}
}

// slow lets n clients read responses at rate bytes a second.
func (c clients) slow(n int, path string, rate int) {
	for i := range n {
		go func() {
			time.Sleep(time.Duration(i) * 100 * time.Millisecond) // not all at the same time
			for c.ctx.Err() == nil {
				c.download(path, rate)
			}
		}()
	}
}

func (c clients) download(path string, rate int) {
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		time.Sleep(time.Second)
		return
	}
	defer conn.Close()
	conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, c.addr)
	buf := make([]byte, rate/20)
	for c.ctx.Err() == nil {
		if _, err := io.ReadFull(conn, buf); err != nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
