//go:build linux

package sim

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
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
	// uploads are the bodies of requests, by id.
	uploads map[uint64]*upload
}

// fate is what became of a request at the servers.
type fate struct {
	tries int
	begun bool // a byte of a response was sent
	cut   bool // a response has ended early
	none  bool // a try got no response, or came too late
	// refused: a server did not want the body. gone: it has more of that than is kept.
	refused, gone bool
}

// originConn is a connection of the proxy to a server.
type originConn struct {
	o       *origins
	s       *sim.Socket
	in, out []byte
	asked   *fate // whose response out is
	method  string
	id      uint64
	size    int
	body    *arriving // of the request; nil: it has none
	ready   bool      // out is being sent
	// answered: all of out was sent, and the body has not ended.
	answered bool
	ends     int   // bytes of out after which the connection ends; -1: it does not
	reset    bool  // by a reset
	after    bool  // it ends after the response
	asEnd    bool  // that is the only end of the body
	spoiled  bool  // more than a response was sent
	until    int64 // it does nothing before
	over     bool
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
	v.origins = &origins{v: v, d: v.dice, got: make(map[uint64]*fate), uploads: make(map[uint64]*upload)}
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
	if c.body != nil && n > 0 {
		if c.take(); c.over {
			return true
		}
	}
	switch {
	case c.asked == nil && bytes.Contains(c.in, []byte("\r\n\r\n")):
		c.answer()
	case c.asked == nil && len(c.in) == 0 && !c.o.v.calm && d.OneIn(500):
		c.end() // an idle one
	case c.ready:
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

// answer reads the head of a request, and responds if there is no body.
func (c *originConn) answer() {
	i := bytes.Index(c.in, []byte("\r\n\r\n"))
	head := string(c.in[:i+2])
	line, _, _ := strings.Cut(head, "\r\n")
	c.in, c.body = c.in[i+4:], nil
	_, err := fmt.Sscanf(line, "%s /proxy/%d/%d HTTP/1.1", &c.method, &c.id, &c.size)
	uploads := c.method == "POST" || c.method == "PUT"
	if err == nil && uploads {
		err = c.startBody(head, c.id)
	}
	if err != nil || !uploads && len(c.in) > 0 {
		c.o.v.wrong(fmt.Errorf("a server got %q and %d bytes more: %v", line, len(c.in), err))
		c.end()
		return
	}
	f := c.o.got[c.id]
	if f == nil {
		f = new(fate)
		c.o.got[c.id] = f
	}
	if f.tries++; f.tries > 3 || f.begun || f.gone || f.tries > 1 && c.method == "POST" {
		c.o.v.wrong(fmt.Errorf("%s was sent again: %+v", line, *f))
	}
	f.none = c.spoiled
	c.asked, c.ends, c.reset, c.after, c.ready, c.answered = f, -1, c.o.d.IntN(2) == 0, false, false, false
	if uploads {
		c.take()
		return
	}
	c.begin()
}

// begin decides how the response is sent.
func (c *originConn) begin() {
	d, f := c.o.d, c.asked
	c.ready = true
	head, whole := c.respond(c.method, c.id, c.size)
	if c.o.v.calm || !d.OneIn(30) {
		return
	}
	c.ends = d.IntN(len(c.out))
	if d.OneIn(4) {
		c.ends = min(c.ends, 1)
	}
	if !c.asEnd || c.reset { // the end of a body that has no other is none too early
		f.none = f.none || c.ends < head
		f.cut = c.ends >= head && c.method != "HEAD" && (c.ends < whole || c.asEnd)
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
	case len(c.out) == 0 && c.body != nil && !c.body.ended && !(c.after && c.asked.refused):
		// The body is read to its end, so that the response is not lost with a reset.
		if c.ready, c.answered = false, true; c.after {
			c.s.CloseWrite()
		}
	case len(c.out) == 0:
		c.rest()
	}
}

// rest waits for the next request, if one may come.
func (c *originConn) rest() {
	if c.after {
		c.reset = false
		c.end()
		return
	}
	c.asked, c.body, c.ready, c.answered = nil, nil, false, false
}
