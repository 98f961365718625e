package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// mixture is a handler whose behaviour the seed in the query selects. At /quick
// it is mostly quick, at /direct it mostly responds directly.
type mixture struct {
	database string
	max      int64 // of handlers at once; 0 is none
	stop     chan bool
	ticks    chan bool

	now, most, runs, inline, directs, answers atomic.Int64
}

func (m *mixture) enter() {
	m.runs.Add(1)
	m.count()
}

func (m *mixture) count() {
	n := m.now.Add(1)
	for most := m.most.Load(); n > most && !m.most.CompareAndSwap(most, n); most = m.most.Load() {
	}
}

func seeded(query string) *rand.Rand {
	var seed int64
	fmt.Sscan(query, &seed)
	return rand.New(rand.NewSource(seed))
}

// compute takes up to a few milliseconds.
func compute(rnd *rand.Rand) {
	for until := time.Now().Add(time.Duration(rnd.Intn(3000)) * time.Microsecond); time.Now().Before(until); {
	}
}

func (m *mixture) ServeDirect(x *direct.Exchange) bool {
	if string(x.Path()) != "/direct" {
		return false
	}
	m.directs.Add(1)
	m.enter()
	defer m.now.Add(-1)
	query := string(x.RawQuery())
	rnd := seeded(query)
	switch rnd.Intn(40) {
	case 0:
		compute(rnd)
	case 1:
		m.wait(rnd)
	case 2:
		panic(http.ErrAbortHandler)
	case 3:
		runtime.Goexit()
	}
	x.SetHeader("X-Query", query)
	x.WriteString(stressAnswer(query, rnd.Intn(10000)))
	if got := string(x.RawQuery()); got != query {
		x.SetHeader("X-Query", "it has changed to "+got)
	}
	return true
}

// aside calls f, which may wait for the unread rest of a body: it is not
// counted then.
func (m *mixture) aside(f func()) {
	m.now.Add(-1)
	f()
	m.count()
}

// wait blocks on a channel for a short time.
func (m *mixture) wait(rnd *rand.Rand) {
	for range 1 + rnd.Intn(3) {
		select {
		case <-m.stop:
		case <-m.ticks:
		}
	}
}

func (m *mixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if engines.OnDriver() {
		m.inline.Add(1)
	}
	m.enter()
	left := false
	leave := func() {
		if !left {
			left = true
			m.now.Add(-1)
		}
	}
	defer leave()
	query := strings.Clone(r.URL.RawQuery)
	rnd := seeded(query)
	kinds := 13
	if r.URL.Path == "/quick" {
		kinds = 200
	}
	switch rnd.Intn(kinds) {
	case 0:
		compute(rnd)
	case 1:
		time.Sleep(time.Duration(rnd.Intn(3000)) * time.Microsecond)
	case 2:
		m.wait(rnd)
	case 3:
		if got, err := m.ask(query); err != nil || got != query {
			w.Header().Set("X-Database", fmt.Sprint(got, err))
		}
	case 4:
		panic(http.ErrAbortHandler)
	case 5:
		m.aside(func() {
			w.Write(make([]byte, rnd.Intn(10000)))
			flush(w)
		})
		panic(http.ErrAbortHandler)
	case 6:
		runtime.Goexit()
	case 7:
		leave() // the server does not count it any more either
		(&stressHandler{}).hijack(w)
		return
	case 8:
		io.CopyN(io.Discard, r.Body, int64(rnd.Intn(1000)))
	case 9:
		w.Header().Set("X-Query", query)
		m.aside(func() { flush(w) })
		m.wait(rnd)
	case 10:
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Millisecond))
		io.Copy(io.Discard, r.Body)
	case 11:
		select {
		case <-r.Context().Done():
		case <-m.ticks:
		case <-m.stop:
		}
	default:
		body, err := io.ReadAll(r.Body)
		if err == nil && len(body) > 0 && strings.Trim(string(body), "b") != "" {
			w.Header().Set("X-Database", "a wrong body")
		}
	}
	w.Header().Set("X-Query", query)
	n := rnd.Intn(3000)
	if rnd.Intn(20) == 0 {
		n = rnd.Intn(1 << 19)
	}
	m.aside(func() { io.WriteString(w, stressAnswer(query, n)) })
	if r.URL.RawQuery != query {
		panic("the request has changed") // the panic is logged
	}
}

// ask queries the database, on a connection of its own.
func (m *mixture) ask(what string) (string, error) {
	nc, err := net.Dial("tcp", m.database)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(servertest.Patience))
	if _, err := fmt.Fprintln(nc, what); err != nil {
		return "", err
	}
	var got string
	_, err = fmt.Fscanln(nc, &got)
	return got, err
}

// startDatabase starts a server that echoes each line after a delay.
func startDatabase(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer nc.Close()
				line, _ := bufio.NewReader(nc).ReadString('\n')
				time.Sleep(time.Duration(len(line)%7) * 300 * time.Microsecond) // a slow database
				io.WriteString(nc, line)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// mixedVisit is a client that sends a few requests, in pieces or at once, and
// may leave in several ways. It reports a response that is complete and wrong.
func (m *mixture) mixedVisit(addr string, rnd *rand.Rand) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(servertest.Patience))
	r := bufio.NewReader(nc)
	var asked []string
	for range 1 + rnd.Intn(6) {
		var batch strings.Builder
		for range 1 + rnd.Intn(8) {
			query := fmt.Sprint(rnd.Int31())
			path := []string{"/quick", "/quick", "/mixed", "/direct", "/direct"}[rnd.Intn(5)]
			body := strings.Repeat("b", rnd.Intn(3000))
			switch rnd.Intn(6) {
			case 0:
				batch.WriteString(post(path+"?"+query, body))
			case 1:
				batch.WriteString(postChunks(path+"?"+query, servertest.Chunks(body, 700)))
			default:
				batch.WriteString(ask("GET "+path+"?"+query, "X-Filler: "+body[:len(body)/8]))
			}
			asked = append(asked, query)
		}
		s := batch.String()
		if rnd.Intn(3) == 0 {
			k := rnd.Intn(len(s))
			io.WriteString(nc, s[:k])
			switch rnd.Intn(30) {
			case 0:
				nc.(*net.TCPConn).SetLinger(0)
				return nil
			case 1:
				nc.(*net.TCPConn).CloseWrite()
				return m.readAll(r, &asked)
			}
			runtime.Gosched()
			s = s[k:]
		}
		if _, err := io.WriteString(nc, s); err != nil {
			break
		}
		switch rnd.Intn(30) {
		case 0:
			nc.(*net.TCPConn).SetLinger(0)
			return nil
		case 1:
			return nil
		}
		for len(asked) > 0 && rnd.Intn(6) > 0 {
			if more, err := m.readOne(r, &asked); !more {
				return err
			}
		}
	}
	nc.(*net.TCPConn).CloseWrite()
	return m.readAll(r, &asked)
}

func (m *mixture) readAll(r *bufio.Reader, asked *[]string) error {
	for len(*asked) > 0 {
		if more, err := m.readOne(r, asked); !more {
			return err
		}
	}
	return nil
}

func (m *mixture) readOne(r *bufio.Reader, asked *[]string) (more bool, err error) {
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			return false, fmt.Errorf("no answer and no end: %w", err)
		}
		return false, nil // a panic, or the server stops
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return false, nil // cut
	}
	query := (*asked)[0]
	*asked = (*asked)[1:]
	switch {
	case res.StatusCode == 503 && m.max > 0 && string(body) == "503 Service Unavailable\n":
		return !res.Close, nil
	case res.StatusCode == 299 || res.StatusCode == 400 || res.StatusCode == 408:
		return false, nil // hijacked, or a request that was cut
	case res.StatusCode != 200 || res.Header.Get("X-Query") != query || string(body) != stressAnswer(query, len(body)) || res.Header.Get("X-Database") != "":
		return false, fmt.Errorf("the response to %s is %s %v %.50q", query, res.Status, res.Header, body)
	}
	m.answers.Add(1)
	return !res.Close, nil
}

// Whatever handlers and clients do, wherever handlers run: complete responses
// are right and nothing leaks.
func TestFaultsPlacement(t *testing.T) {
	mixtures(t, 0, false)
}

// mixtures runs a stress test on all engines. shutdown may stop some of the
// servers in the middle.
func mixtures(t *testing.T, max int, shutdown bool) {
	database := startDatabase(t)
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		s := fresh()
		s.MaxHandlers = max
		mixtureRun(t, s, database, shutdown, time.Now().UnixNano())
	})
}

func mixtureRun(t *testing.T, s *chert.Server, database string, shutdown bool, seed int64) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	rnd := rand.New(rand.NewSource(seed))
	m := &mixture{database: database, max: int64(s.MaxHandlers), stop: make(chan bool), ticks: make(chan bool)}
	s.Handler = m
	fs := engines.StartCounting(t, s)
	ended, ticking := make(chan bool), make(chan bool)
	go func() { // wakes the waiting handlers
		defer close(ticking)
		for {
			select {
			case m.ticks <- true:
			case <-ended:
				return
			}
			time.Sleep(100 * time.Microsecond) // so that they do wait
		}
	}()
	const n = 16
	errs := make(chan error, n)
	for range n {
		mine := rand.New(rand.NewSource(rnd.Int63()))
		go func() {
			var err error
			for range 12 {
				if err = m.mixedVisit(fs.ListenAddr, mine); err != nil {
					break
				}
			}
			errs <- err
		}()
	}
	if shutdown && rnd.Intn(2) == 0 {
		many := 1 + int64(rnd.Intn(500))
		servertest.Eventually(t, "something runs", func() bool { return m.runs.Load() >= many || len(errs) == n })
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.Intn(20))*time.Millisecond)
		fs.Shutdown(ctx)
		cancel()
		fs.Close()
	}
	for range n {
		if err := servertest.Await(t, errs, "the clients"); err != nil {
			t.Error(err)
		}
	}
	close(m.stop)
	close(ended)
	<-ticking
	fs.Settled(1)
	if log := fs.Log.Served(); log != "" {
		t.Errorf("logged %s", servertest.Brief(log))
	}
	if n := m.most.Load(); m.max > 0 && n > m.max {
		t.Errorf("%d handlers ran at once, of %d", n, m.max)
	}
	if n := m.now.Load(); n != 0 {
		t.Errorf("%d handlers are left", n)
	}
	t.Logf("%d runs, %d inline, %d direct, %d complete responses", m.runs.Load(), m.inline.Load(), m.directs.Load(), m.answers.Load())
}

// With MaxHandlers too: no wrong responses, and no more handlers at once than
// may run.
func TestFaultsPlacementMaxHandlers(t *testing.T) { mixtures(t, 6, false) }

// And while the server shuts down.
func TestFaultsPlacementShutdown(t *testing.T) { mixtures(t, 0, true) }
