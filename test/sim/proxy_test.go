//go:build linux

package sim

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sim"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/proxy"
)

// origins plays all servers behind a proxy, and remembers what each request got.
type origins struct {
	v     *served
	d     *sim.Dice
	mu    sync.Mutex // for conns: loops open connections
	conns []*originConn
	got   map[uint64]*fate // by id
}

// fate is what became of a request at the servers.
type fate struct {
	tries int
	begun bool // a byte of a response was sent
	cut   bool // a response has ended early
	none  bool // a try got no response, or came too late
}

// originConn is a connection of the proxy to a server.
type originConn struct {
	o       *origins
	s       *sim.Socket
	in, out []byte
	asked   *fate // whose response out is
	ends    int   // bytes of out after which the connection ends; -1: it does not
	reset   bool  // by a reset
	after   bool  // it ends after the response
	asEnd   bool  // that is the only end of the body
	spoiled bool  // more than a response was sent
	until   int64 // it does nothing before
	over    bool
}

// newProxy is a proxy whose requests are all forwarded on loops.
func newProxy(v *served) http.Handler {
	logger := slog.New(slog.NewTextHandler(v, nil))
	pool := proxy.NewPool(&proxy.PoolOptions{Logger: logger})
	up := &proxy.UpstreamOptions{Name: "sim", Servers: []proxy.Server{{Addr: "10.9.0.1:80"}, {Addr: "10.9.0.2:80"}},
		Balance: proxy.Balance{Policy: proxy.PolicyRoundRobin}, // others have randomness of their own
		Health:  proxy.Health{Off: true}, ConnectTimeout: 2 * time.Second, ResponseTimeout: 5 * time.Second, StallTimeout: 5 * time.Second}
	u, err := pool.Upstream(up)
	if err != nil {
		panic(err)
	}
	h, err := proxy.New(&proxy.Options{Upstream: u, Logger: logger})
	if err != nil {
		panic(err)
	}
	v.ends = append(v.ends, pool.Close)
	return onLoops{h, v}
}

// onLoops is a proxy of which no request may need a goroutine, which would need real sockets.
type onLoops struct {
	*proxy.Handler
	v *served
}

func (h onLoops) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.v.wrong(fmt.Errorf("%s %s is not forwarded on a loop", r.Method, r.URL))
}

// startOrigins lets the servers listen.
func startOrigins(v *served) {
	v.origins = &origins{v: v, d: v.dice, got: make(map[uint64]*fate)}
	v.kernel.Origin = v.origins.open
	v.setup.faults[sim.Jump] = 0 // which would be too late for a server at any time
	v.dice.Faults(v.setup.faults)
	v.Placement = chert.PlacementInline
	v.world.Add(v.origins)
}

// open is called by the kernel, under its lock.
func (o *origins) open(string) (*sim.Socket, sys.Errno) {
	if !o.v.calm && o.d.OneIn(50) {
		return nil, syscall.ECONNREFUSED
	}
	room := 1 << 16
	if o.d.OneIn(4) {
		room = 100 + o.d.IntN(4<<10)
	}
	c := &originConn{o: o, s: o.v.kernel.NewSocket("10.9.0.1:80", room), ends: -1}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.conns = append(o.conns, c)
	return c.s, 0
}

// Step implements sim.Actor.
func (o *origins) Step() bool {
	o.mu.Lock()
	conns := o.conns
	o.mu.Unlock()
	did := false
	if n := len(conns); n > 0 {
		for i, first := 0, o.d.IntN(n); i < n && !did; i++ {
			did = conns[(first+i)%n].step()
		}
	}
	o.mu.Lock()
	o.conns = slices.DeleteFunc(o.conns, func(c *originConn) bool { return c.over })
	o.mu.Unlock()
	return did
}

// Next implements sim.Actor.
func (o *origins) Next() int64 {
	next, now := int64(poll.Never), o.v.world.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.conns {
		if c.until > now {
			next = min(next, c.until)
		}
	}
	return next
}

func (c *originConn) step() (did bool) {
	d := c.o.d
	if c.until > c.o.v.world.Now() {
		return false
	}
	if c.s.Unarrived() && !d.Strikes(sim.LateBytes) {
		n := 1 << 30
		if d.OneIn(8) {
			n = 1 + d.IntN(200)
		}
		c.s.Arrive(n)
		did = true
	}
	buf := c.o.v.scratch[:d.Part(4096)]
	n, err := c.s.Receive(buf)
	c.in = append(c.in, buf[:n]...)
	if err != nil {
		c.end()
		return true
	}
	switch {
	case c.asked == nil && bytes.Contains(c.in, []byte("\r\n\r\n")):
		c.answer()
	case c.asked == nil && len(c.in) == 0 && !c.o.v.calm && d.OneIn(500):
		c.end() // an idle one
	case c.asked != nil:
		c.send()
	default:
		return did || n > 0
	}
	return true
}

// end ends the connection, by a reset or not.
func (c *originConn) end() {
	c.over = true
	if c.reset {
		c.s.Arrive(1 << 30)
		c.s.Reset()
		return
	}
	c.s.Close()
	for c.s.Arrive(1 << 30) {
	}
}

// answer reads a request and decides what becomes of it.
func (c *originConn) answer() {
	d := c.o.d
	i := bytes.Index(c.in, []byte("\r\n\r\n"))
	line, _, _ := strings.Cut(string(c.in[:i]), "\r\n")
	c.in = c.in[i+4:]
	var method string
	var id uint64
	var size int
	if _, err := fmt.Sscanf(line, "%s /proxy/%d/%d HTTP/1.1", &method, &id, &size); err != nil || len(c.in) > 0 {
		c.o.v.wrong(fmt.Errorf("a server got %q and %d bytes more: %v", line, len(c.in), err))
		c.end()
		return
	}
	f := c.o.got[id]
	if f == nil {
		f = new(fate)
		c.o.got[id] = f
	}
	if f.tries++; f.tries > 3 || f.begun {
		c.o.v.wrong(fmt.Errorf("%s was sent again: %+v", line, *f))
	}
	f.none = c.spoiled
	c.asked, c.ends, c.reset, c.after = f, -1, d.IntN(2) == 0, false
	head, whole := c.respond(method, id, size)
	if c.o.v.calm || !d.OneIn(30) {
		return
	}
	c.ends = d.IntN(len(c.out))
	if d.OneIn(4) {
		c.ends = min(c.ends, 1)
	}
	if !c.asEnd || c.reset { // the end of a body that has no other is none too early
		f.none = f.none || c.ends < head
		f.cut = c.ends >= head && method == "GET" && (c.ends < whole || c.asEnd)
	} else {
		c.ends = -1
	}
	if d.OneIn(4) {
		f.none = true // it comes too late, all of it
		f.cut = false
		c.ends, c.until = 0, c.o.v.world.Now()+int64(20*time.Second)
	}
}

// respond makes the response, and returns how long its head is and all that it needs to be
// whole.
func (c *originConn) respond(method string, id uint64, size int) (headSize, whole int) {
	d := c.o.d
	b := body(id, size)
	c.asEnd = false
	head := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nX-Id: %d\r\n", id)
	var content []byte
	switch k := d.IntN(5); {
	case k < 2:
		head = fmt.Appendf(head, "Content-Length: %d\r\n", size)
		content = b
	case k < 4 || method == "HEAD":
		head = append(head, "Transfer-Encoding: chunked\r\n"...)
		for len(b) > 0 {
			n := 1 + d.IntN(min(len(b), 20_000))
			content = fmt.Appendf(content, "%x\r\n%s\r\n", n, b[:n])
			b = b[n:]
		}
		content = append(content, "0\r\n\r\n"...)
	default:
		content, c.after, c.asEnd = b, true, true
	}
	more := ""
	if !c.after && d.OneIn(10) {
		head, c.after = append(head, "Connection: close\r\n"...), true
	} else if !c.asEnd && !c.o.v.calm && d.OneIn(20) {
		// After it the connection must not be used again; it may come too late for that.
		more, c.spoiled = "more", true
	}
	head = append(head, "\r\n"...)
	if method == "HEAD" {
		content = nil
	}
	c.out = append(append(c.out[:0], head...), content...)
	whole = len(c.out)
	c.out = append(c.out, more...)
	return len(head), whole
}

// send sends a part of the response.
func (c *originConn) send() {
	n := c.o.d.Part(len(c.out))
	if c.ends >= 0 {
		n = min(n, c.ends)
		c.ends -= n
	}
	if n > 0 {
		c.asked.begun = true
		c.s.Send(c.out[:n])
		c.out = append(c.out[:0], c.out[n:]...)
	}
	switch {
	case c.ends == 0:
		c.end()
	case len(c.out) == 0 && c.after:
		c.reset = false
		c.end()
	case len(c.out) == 0:
		c.asked = nil
	}
}

// proxyClient plays a client of a proxy.
type proxyClient struct{ *client }

func newProxyClient(p peer) model {
	c := &proxyClient{newClient(p)}
	c.as = c
	return c
}

// Step implements sim.Actor.
func (c *proxyClient) Step() bool {
	c.look()
	return c.client.Step()
}

// look learns from the servers which responses may be cut off, and must.
func (c *proxyClient) look() {
	for i := range c.waiting {
		f := c.v.origins.got[c.waiting[i].id]
		c.waiting[i].cut = f != nil && f.cut
	}
}

// request implements speaker.
func (c *proxyClient) request() {
	c.next++
	a := asked{id: uint64(c.no)<<32 | c.next, kind: "proxy", method: "GET", size: c.size(), read: -1}
	if c.d.OneIn(20) {
		a.method = "HEAD"
	}
	b := fmt.Appendf(c.out, "%s /proxy/%d/%d HTTP/1.1\r\nHost: sim\r\n", a.method, a.id, a.size)
	if c.d.OneIn(100) && !c.stays {
		b = append(b, "Connection: close\r\n"...)
		a.closes, c.closing = true, true
	}
	c.out = append(b, "\r\n"...)
	c.waiting = append(c.waiting, a)
}

// response implements speaker.
func (c *proxyClient) response(b []byte, eof bool) (used int, err error) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0, errPartial
	}
	head := string(b[:end+2])
	if !strings.HasPrefix(head, "HTTP/1.1 50") || len(c.waiting) == 0 || strings.HasPrefix(head, "HTTP/1.1 503") {
		return c.client.response(b, eof)
	}
	a := c.waiting[0]
	f := c.v.origins.got[a.id]
	if c.calm || f != nil && !f.none && !c.v.tight {
		return 0, fmt.Errorf("an error for %+v, which got %+v", a, f)
	}
	_, value, _ := strings.Cut(head, "\r\nContent-Length: ")
	value, _, _ = strings.Cut(value, "\r\n")
	length, err := strconv.Atoi(value)
	if err != nil || !strings.Contains(head, "\r\nProxy-Status: ") {
		return 0, errors.New("an error of the proxy without Content-Length or Proxy-Status")
	}
	if a.method == "HEAD" {
		length = 0
	}
	if len(b)-end-4 < length {
		return 0, errPartial
	}
	c.pop()
	c.denied++
	return end + 4 + length, nil
}
