package faults

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/router"
)

const attackEnv = "CHERT_ATTACK_SERVER" // of the servers that TestHoardAttack starts

// How long an innocent client waits while another makes its requests count as
// quick and then sends slow ones, on chert's loops, its goroutines and
// net/http. It measures and asserts nothing of the figures, so it runs only if
// CHERT_ATTACK is set:
//
//	CHERT_ATTACK=1 go test -run 'HoardAttack/' -v -timeout 20m ./test/faults
//
// Each server is a process of its own.
func TestHoardAttack(t *testing.T) {
	if what := os.Getenv(attackEnv); what != "" {
		serveAttacked(t, what)
		return
	}
	if os.Getenv("CHERT_ATTACK") == "" {
		t.Skip("CHERT_ATTACK is not set")
	}
	if !sys.HavePoller {
		t.Skip("there are no event loops here")
	}
	t.Logf("%-34s %-10s %30s %30s %6s", "", "", "kept p50/p99/longest, ms", "new p50/p99/longest, ms", "inline")
	for _, a := range placementAttacks {
		t.Run(a.name, func(t *testing.T) {
			for _, engine := range []string{"nethttp", "goroutines", "loops"} {
				at := startAttacked(t, engine+" "+a.handler)
				a.prepare(at)
				in := at.innocent()
				a.burst(at)
				kept, fresh := in.end()
				t.Logf("%-34s %-10s %30s %30s %6s", a.name, engine, kept, fresh, at.one("GET", "/inline"))
			}
		})
	}
}

// placementAttack is a way to make handlers slow that were quick.
type placementAttack struct {
	name    string
	handler string // plain, routed or direct
	method  string // GET by default
	prefix  string // of the paths, which end with a number
	strike  int    // paths that are proven and slow before the others are proven
	reset   bool   // a slow request after each proof keeps the prefix unproven
	prove   int    // quick requests for each path
	paths   int
	us      int           // how long the slow requests take, in microseconds
	body    bool          // they take as long because their body comes late
	lasts   time.Duration // 40 connections alternate between quick and slow requests; 0: all are slow at once
	flood   int           // random paths, requested after the proofs
}

var placementAttacks = []placementAttack{
	{name: "hoarded below a struck prefix", prefix: "/q/", strike: 12, prove: 34, paths: 1500, us: 200_000},
	{name: "hoarded without strikes", prefix: "/q/", reset: true, prove: 34, paths: 1500, us: 200_000},
	{name: "hoarded with patience", prefix: "/q/", strike: 12, prove: 2200, paths: 200, us: 200_000},
	{name: "first segments", prefix: "/", prove: 34, paths: 1500, us: 200_000},
	{name: "third segments", prefix: "/a/b/", strike: 12, prove: 34, paths: 1500, us: 200_000},
	{name: "strikes washed away", prefix: "/q/", strike: 12, flood: 20_000, prove: 34, paths: 400, us: 200_000},
	{name: "POST with a body", prefix: "/", method: "POST", prove: 34, paths: 1500, us: 200_000},
	{name: "POST whose body comes late", prefix: "/", method: "POST", prove: 34, paths: 1500, us: 200_000, body: true},
	{name: "one route of a router", handler: "routed", prefix: "/q/", prove: 34, paths: 1500, us: 200_000},
	{name: "direct, unproven", handler: "direct", prefix: "/", paths: 1500, us: 200_000},
	{name: "direct, hoarded", handler: "direct", prefix: "/q/", strike: 12, prove: 34, paths: 1500, us: 200_000},
	{name: "shorter than an overstay", prefix: "/", prove: 34, paths: 1500, us: 700},
	{name: "sustained", prefix: "/q/", strike: 12, prove: 34, us: 5000, lasts: 8 * time.Second},
	{name: "sustained, first segments", prefix: "/", prove: 34, us: 5000, lasts: 8 * time.Second},
	{name: "sustained, direct", handler: "direct", prefix: "/", us: 5000, lasts: 8 * time.Second},
	{name: "sustained, short", prefix: "/", prove: 34, us: 700, lasts: 8 * time.Second},
}

func (a *placementAttack) verb() string {
	if a.method == "" {
		return "GET"
	}
	return a.method
}

func (a *placementAttack) path(i int) string {
	return fmt.Sprintf("%s%x", a.prefix, uint32(i)*2654435761)
}

func (a *placementAttack) slow() string { return fmt.Sprintf("?us=%d", a.us) }

// prepare proves the paths.
func (a *placementAttack) prepare(at *attacked) {
	c := at.dial()
	defer c.Close()
	for i := range a.strike {
		c.times(34, a.verb(), a.path(1<<20+i))
		c.times(1, a.verb(), a.path(1<<20+i)+"?us=5000")
	}
	for i := range a.flood {
		c.times(1, "GET", a.path(1<<24+i))
	}
	for i := range a.paths {
		c.times(a.prove, a.verb(), a.path(i))
		if a.reset {
			c.times(1, a.verb(), a.prefix+"slow?us=1000")
		}
	}
	time.Sleep(4 * time.Second) // until a server that has become cautious no longer is
}

func (a *placementAttack) burst(at *attacked) {
	var all sync.WaitGroup
	defer all.Wait()
	if a.lasts > 0 {
		end, n := time.Now().Add(a.lasts), atomic.Int64{}
		for range 40 {
			all.Go(func() {
				c := at.dial()
				defer c.Close()
				for time.Now().Before(end) {
					p := a.path(int(n.Add(1)))
					c.times(a.prove, a.verb(), p)
					c.times(1, a.verb(), p+a.slow())
				}
			})
		}
		return
	}
	rounds := 1
	if a.us < 1000 {
		rounds = 5
	}
	for range rounds {
		conns := make([]*attackConn, a.paths)
		for i := range conns {
			conns[i] = at.dial()
		}
		time.Sleep(200 * time.Millisecond)
		for i, c := range conns {
			req := attackRequest(a.verb(), a.path(i)+a.slow())
			if a.body {
				req = "POST " + a.path(i) + " HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nh"
			}
			io.WriteString(c, req)
		}
		if a.body {
			time.Sleep(time.Duration(a.us) * time.Microsecond)
			for _, c := range conns {
				io.WriteString(c, "ello")
			}
		}
		for _, c := range conns {
			c.answer()
			c.Close()
		}
	}
}

// attacked is a server in another process.
type attacked struct {
	t    *testing.T
	addr string
}

func startAttacked(t *testing.T, what string) *attacked {
	cmd := exec.Command(os.Args[0], "-test.run=^TestHoardAttack$", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), attackEnv+"="+what)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		io.Copy(io.Discard, out)
		cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &attacked{t, strings.TrimSpace(addr)}
}

type attackConn struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func (at *attacked) dial() *attackConn {
	nc, err := net.Dial("tcp", at.addr)
	if err != nil {
		at.t.Error(err)
		nc, _ = net.Pipe()
	}
	nc.SetDeadline(time.Now().Add(3 * servertest.Patience))
	return &attackConn{nc, at.t, bufio.NewReader(nc)}
}

func attackRequest(method, target string) string {
	s := method + " " + target + " HTTP/1.1\r\nHost: h\r\n"
	if method == "POST" {
		return s + "Content-Length: 5\r\n\r\nhello"
	}
	return s + "\r\n"
}

// times sends n requests, pipelined.
func (c *attackConn) times(n int, method, target string) {
	for ; n > 0; n -= min(n, 64) {
		io.WriteString(c, strings.Repeat(attackRequest(method, target), min(n, 64)))
		for range min(n, 64) {
			c.answer()
		}
	}
}

func (c *attackConn) answer() string {
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Error(err)
		return ""
	}
	b, _ := io.ReadAll(res.Body)
	return string(b)
}

func (at *attacked) one(method, target string) string {
	c := at.dial()
	defer c.Close()
	io.WriteString(c, attackRequest(method, target))
	return c.answer()
}

// innocent is a client with a kept connection, and one that makes a connection
// for each request, every 1 to 5 ms.
type innocent struct {
	stop        chan bool
	all         sync.WaitGroup
	kept, fresh times
}

type times []time.Duration

func (d times) String() string {
	slices.Sort(d)
	ms := func(d time.Duration) string { return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) }
	return ms(d[len(d)/2]) + " / " + ms(d[len(d)*99/100]) + " / " + ms(d[len(d)-1])
}

func (at *attacked) innocent() *innocent {
	in := &innocent{stop: make(chan bool)}
	run := func(d *times, f func()) {
		for {
			began := time.Now()
			f()
			*d = append(*d, time.Since(began))
			select {
			case <-in.stop:
				return
			case <-time.After(time.Duration(1+rand.IntN(4)) * time.Millisecond):
			}
		}
	}
	c := at.dial()
	c.times(64, "GET", "/innocent") // so that it counts as quick
	in.all.Go(func() { run(&in.kept, func() { c.times(1, "GET", "/innocent") }); c.Close() })
	in.all.Go(func() { run(&in.fresh, func() { at.one("GET", "/innocent") }) })
	return in
}

func (in *innocent) end() (kept, fresh times) {
	close(in.stop)
	in.all.Wait()
	return in.kept, in.fresh
}

// attackedHandler takes the time in the query, and counts slow runs on a loop.
type attackedHandler struct{ inline atomic.Int64 }

func (h *attackedHandler) wait(query string) {
	if s, ok := strings.CutPrefix(query, "us="); ok {
		if engines.OnDriver() {
			h.inline.Add(1)
		}
		us, _ := strconv.Atoi(s)
		time.Sleep(time.Duration(us) * time.Microsecond)
	}
}

func (h *attackedHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	h.wait(r.URL.RawQuery)
	if r.URL.Path == "/inline" {
		fmt.Fprint(w, h.inline.Load())
		return
	}
	put(w, "ok")
}

type attackedDirect struct{ attackedHandler }

func (h *attackedDirect) ServeDirect(x *direct.Exchange) bool {
	if string(x.Path()) == "/inline" {
		return false
	}
	h.wait(string(x.RawQuery()))
	x.WriteString("ok")
	return true
}

// serveAttacked runs a server for TestHoardAttack until its input ends.
func serveAttacked(t *testing.T, what string) {
	engine, kind, _ := strings.Cut(what, " ")
	h := new(attackedDirect)
	var handler http.Handler = &h.attackedHandler
	switch kind {
	case "direct":
		handler = h
	case "routed":
		r := router.New()
		r.Handle("/{one}", &h.attackedHandler)
		r.Handle("/{one}/{two}", &h.attackedHandler)
		handler = r
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	switch engine {
	case "nethttp":
		s := &http.Server{Handler: handler}
		go s.Serve(l)
		defer s.Close()
	default:
		s := &chert.Server{Handler: handler, Engine: map[string]chert.Engine{"loops": chert.EngineLoops, "goroutines": chert.EngineGoroutines}[engine]}
		go s.Serve(l)
		defer s.Close()
	}
	fmt.Println(l.Addr())
	io.Copy(io.Discard, os.Stdin)
}
