package outbound

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/outbound"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

// An upstream is a server of raw bytes.
type upstream struct {
	t testing.TB
	l net.Listener
	// serve has each connection, with its number, on a goroutine of its own.
	serve func(c *servertest.Client, n int)
	wg    sync.WaitGroup
	mu    sync.Mutex
	open  []net.Conn
}

func start(t testing.TB, serve func(c *servertest.Client, n int)) *upstream {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &upstream{t: t, l: l, serve: serve}
	u.wg.Add(1)
	go u.accept()
	t.Cleanup(func() {
		l.Close()
		u.mu.Lock()
		for _, nc := range u.open {
			nc.Close()
		}
		u.mu.Unlock()
		u.wg.Wait()
	})
	return u
}

func (u *upstream) accept() {
	defer u.wg.Done()
	for n := 0; ; n++ {
		nc, err := u.l.Accept()
		if err != nil {
			return
		}
		u.mu.Lock()
		u.open = append(u.open, nc)
		u.mu.Unlock()
		u.wg.Add(1)
		go func() {
			defer u.wg.Done()
			defer nc.Close()
			u.serve(servertest.Wrap(u.t, nc), n)
		}()
	}
}

func (u *upstream) addr() string { return u.l.Addr().String() }

// answers serves each request, of no body, with what answer returns, and closes after "".
func answers(answer func(n int, head string) string) func(c *servertest.Client, n int) {
	return func(c *servertest.Client, n int) {
		for {
			head, ok := headOf(c)
			if !ok {
				return
			}
			a := answer(n, head)
			if a == "" {
				return
			}
			if _, err := c.Conn.Write([]byte(a)); err != nil {
				return
			}
		}
	}
}

// headOf reads a head; it reports false at the end of the connection.
func headOf(c *servertest.Client) (string, bool) {
	var b strings.Builder
	for {
		line, err := c.R.ReadString('\n')
		if err != nil {
			return "", false
		}
		if b.WriteString(line); line == "\r\n" {
			return b.String(), true
		}
	}
}

// A gateway is a handler that forwards, and the Route of all its requests.
type gateway struct {
	t       testing.TB
	servers []*outbound.Server
	terms   *outbound.Terms
	again   bool
	policy  retry.Policy

	mu       sync.Mutex
	attempts []retry.Attempt
	statuses []int
	done     []reason.Code
	idle     sync.Cond
}

func terms() *outbound.Terms {
	const long = int64(servertest.Patience)
	return &outbound.Terms{Connect: long, Response: long, Stall: long, Idle: 4, IdleTime: long}
}

func gatewayTo(t testing.TB, terms *outbound.Terms, addrs ...string) *gateway {
	g := &gateway{t: t, again: true, terms: outbound.NewTerms(terms)}
	g.idle.L = &g.mu
	for _, a := range addrs {
		r, err := sys.NewRemote("tcp", a)
		if err != nil {
			t.Fatal(err)
		}
		g.servers = append(g.servers, outbound.NewServer(r, nil, retry.NewIdleLimit(0)))
	}
	return g
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	http.Error(w, "not forwarded", http.StatusNotImplemented)
}

func (g *gateway) ServeDirect(x *direct.Exchange) bool {
	p := outbound.NewPlan()
	p.Route, p.Terms, p.Again, p.Via = &trip{g: g}, g.terms, g.again, "test"
	p.Request.Via = "test"
	return (*wire.Exchange)(x).Forward(p)
}

// A trip is the Route of one request.
type trip struct {
	g     *gateway
	tries int
	over  bool
}

func (r *trip) Wait(*outbound.Exchange) (*outbound.Server, bool) { return r.g.servers[0], false }

func (r *trip) Failed(a *retry.Attempt, idle int64, _ error) (next *outbound.Server, fresh bool) {
	g := r.g
	g.mu.Lock()
	defer g.mu.Unlock()
	g.attempts = append(g.attempts, *a)
	q := retry.Request{Idempotent: g.again}
	switch v := retry.Decide(&g.policy, &q, a); {
	case v.Action == retry.Reconnect:
		return g.servers[r.tries], true
	case v.Action == retry.Next && r.tries+1 < len(g.servers):
		r.tries++
		return g.servers[r.tries], false
	}
	r.end(a.Reason)
	return nil, false
}

func (r *trip) Answered(status int, _ uint8, _ bool) ([]byte, *outbound.Server) {
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	r.g.statuses = append(r.g.statuses, status)
	return nil, nil
}

// Gone implements outbound.Route. Bodies have arrived when a gateway is called, and are kept.
func (r *trip) Gone() { r.g.t.Error("a body is not kept") }

// Spoilt implements outbound.Route.
func (r *trip) Spoilt(int, string) { r.g.t.Error("a body is spoilt") }

func (r *trip) Done(why reason.Code) {
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	r.end(why)
}

func (r *trip) end(why reason.Code) {
	if r.over {
		r.g.t.Error("a Route was ended twice")
	}
	r.over = true
	r.g.done = append(r.g.done, why)
	r.g.idle.Broadcast()
}

func (r *trip) Instead() *direct.Response {
	return direct.NewResponse(http.StatusBadGateway, nil, []byte("instead\n"))
}

// ended waits until n requests have ended, and returns how.
func (g *gateway) ended(n int) []reason.Code {
	g.t.Helper()
	var done []reason.Code
	servertest.Eventually(g.t, "the requests have ended", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		done = append([]reason.Code(nil), g.done...)
		return len(done) >= n
	})
	return done
}

// serve serves the gateway on loops.
func (g *gateway) serve(t testing.TB) *engines.Server {
	t.Helper()
	return engines.Start(t, &chert.Server{Handler: g, Engine: chert.EngineLoops, Placement: chert.PlacementInline})
}
