//go:build linux

package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sim"
	"github.com/chert-http/chert/internal/testhook"
)

// setup is what a seed decides of the server and its kernel.
type setup struct {
	loops     int
	limit     int // of descriptors
	placement chert.Placement
	maxConns  int
	handlers  int  // MaxHandlers
	secure    bool // over TLS
	faults    sim.Faults
}

// choose makes a setup. A third of them is calm: nothing fails, so nothing may be cut.
func choose(d *sim.Dice) (s setup, calm bool) {
	s = setup{loops: 1 + d.IntN(3), limit: 1 << 20, placement: chert.Placement(d.IntN(3))}
	calm = d.OneIn(3)
	odds := func(n int) int {
		if d.IntN(2) == 0 {
			return 0
		}
		return 2 + d.IntN(n)
	}
	s.faults[sim.LateBytes] = odds(20)
	s.faults[sim.ReadAgain] = odds(100)
	s.faults[sim.WriteAgain] = odds(100)
	s.faults[sim.ShortWrite] = odds(50)
	s.faults[sim.LateEvent] = odds(20)
	s.faults[sim.Spurious] = odds(100)
	s.faults[sim.Lost] = odds(2) // no server may end a connection by a reset that has a client's response on its way
	if calm {
		return s, true
	}
	s.faults[sim.NoDescriptor] = odds(200)
	s.faults[sim.NoMemory] = odds(200)
	s.faults[sim.Aborted] = odds(200)
	s.faults[sim.Jump] = odds(100_000)
	if d.OneIn(3) {
		s.maxConns = 4 + d.IntN(30)
	}
	if d.OneIn(3) {
		s.handlers = 1 + d.IntN(4)
	}
	if d.OneIn(4) {
		s.limit = 8 + d.IntN(30)
	}
	return s, false
}

// served is a server on a simulated kernel.
type served struct {
	*chert.Server
	kernel    *sim.Kernel
	world     *sim.World
	inside    testhook.Server
	listeners []*sim.Listener
	ended     chan error
	dice      *sim.Dice
	scratch   [64 << 10]byte // what a client receives, while it does
	mu        sync.Mutex
	log       strings.Builder
	running   atomic.Int32 // handlers
	tight     bool         // descriptors or memory may be short
	// finished: all clients are over. What a model's handler has begun is to end.
	finished atomic.Bool
	turns    sync.Map       // of requests of the kind "after": chan struct{} by id
	ends     []func() error // what models check at the end
	wrong    func(error)    // fails the run
	ws       *wsServer
	sse      *sseServer
	files    *fileServer
	origins  *origins
	fleet    *fleet // whose server this is; nil: it is alone
	setup    setup
	calm     bool
	sockets  []*socket // of calls of Serve
	ending   bool      // it is being ended before the others
	killed   bool      // so that it may cut
	stopped  chan error
}

func serve(s setup, d *sim.Dice, w *sim.World, handler func(*served) http.Handler, more func(*served), fail func(error)) (*served, error) {
	v := &served{kernel: w.Kernel, world: w, dice: d, wrong: fail, setup: s}
	v.Server = &chert.Server{
		Handler:     handler(v),
		Placement:   s.placement,
		MaxConns:    s.maxConns,
		MaxHandlers: s.handlers,
		ErrorLog:    log.New(v, "", 0),
	}
	if s.secure {
		speakTLS(v)
	}
	if more != nil {
		more(v)
	}
	v.inside = testhook.Of(v.Server)
	v.inside.Kernel(&testhook.Kernel{
		Loops:   s.loops,
		Poller:  func() (poll.Poller, error) { return w.Kernel.NewPoller(), nil },
		Sockets: v.open,
	})
	return v, v.listen()
}

// open opens a listening socket for each of n loops.
func (v *served) open(n int) (fds []int, err error) {
	so := v.sockets[len(v.sockets)-1]
	var sims []*sim.Listener
	for range n {
		l, fd, err := v.kernel.Listen(512)
		if err != nil {
			v.kernel.Close(fds...)
			return nil, err
		}
		sims = append(sims, l)
		fds = append(fds, fd)
	}
	// The race detector finds no order in synctest.Wait for a goroutine in WaitGroup.Wait.
	v.mu.Lock()
	defer v.mu.Unlock()
	so.sims = sims
	v.listeners = append(v.listeners, sims...)
	return fds, nil
}

// listens counts the calls of listen.
var listens atomic.Uint32

// listen begins a call of Serve. It needs a real socket, which is closed before the simulated ones are opened.
func (v *served) listen() error {
	// An address of its own: other tests may have all ports of 127.0.0.1 in use.
	n := listens.Add(1)
	l, err := v.Server.Listen("tcp", fmt.Sprintf("127.84.%d.%d:0", n>>8&0xff, n&0xff))
	if err != nil {
		return err
	}
	so := &socket{l: l, ended: make(chan error, 1)}
	if v.sockets = append(v.sockets, so); len(v.sockets) == 1 {
		v.ended = so.ended
	}
	go func() {
		if v.TLSConfig != nil {
			so.ended <- v.Server.ServeTLS(l, "", "")
			return
		}
		so.ended <- v.Server.Serve(l)
	}()
	return nil
}

// Write implements io.Writer for the server's log.
func (v *served) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.log.Write(p)
	return len(p), nil
}

func (v *served) logged() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.log.String()
}

// dial connects to one of the listeners, as the kernel's hash would.
func (v *served) dial(peer string, room int) *sim.Socket {
	if v.fleet != nil {
		return v.fleet.dial(v, peer, room)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.listeners) == 0 {
		return nil
	}
	return v.listeners[v.dice.IntN(len(v.listeners))].Dial(peer, room)
}

// over reports whether nobody listens any more.
func (v *served) over() bool {
	if v.fleet != nil {
		return v.fleet.over
	}
	return v.inside.Ending()
}

// stop is Shutdown, of all servers.
func (v *served) stop(ctx context.Context) error {
	if v.fleet != nil {
		return v.fleet.stop(ctx)
	}
	return v.Shutdown(ctx)
}

// busy reports whether handlers run.
func (v *served) busy() bool {
	if v.fleet != nil {
		return v.fleet.running() > 0
	}
	return v.running.Load() > 0
}

// pattern has the bytes of every body: that of request n of client c begins at its own place.
var pattern = func() (p [1 << 20]byte) {
	x := uint32(1)
	for i := range p {
		x = x*1664525 + 1013904223
		p[i] = byte(x >> 24)
	}
	return p
}()

const maxBody = 300 << 10

func body(id uint64, size int) []byte {
	from := int(id*2654435761%(uint64(len(pattern)-maxBody))) &^ 1
	return pattern[from : from+size]
}

func newH1(v *served) http.Handler { return http.HandlerFunc(v.handle) }

var octets = []string{"application/octet-stream"}

// What a handler does is in the request's path: /kind/id/size/part.
func (v *served) handle(w http.ResponseWriter, r *http.Request) {
	v.running.Add(1)
	defer v.running.Add(-1)
	kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	name, rest, _ := strings.Cut(rest, "/")
	long, short, ok := strings.Cut(rest, "/")
	if !ok {
		http.Error(w, "path", 400)
		return
	}
	id, _ := strconv.ParseUint(name, 10, 64)
	size, _ := strconv.Atoi(long)
	part, _ := strconv.Atoi(short)
	b := body(id, size)
	h := w.Header()
	h["X-Id"] = []string{name}
	if id%4 != 0 {
		h["Content-Type"] = octets // the server looks at the others' bodies
	}
	switch kind {
	case "quick":
		w.Write(b)
	case "slow":
		v.world.Point(id)
		time.Sleep(time.Duration(part) * time.Microsecond)
		v.world.Point(id)
		w.Write(b)
	case "pieces":
		for len(b) > 0 {
			n := min(part+1, len(b))
			if _, err := w.Write(b[:n]); err != nil {
				return
			}
			b = b[n:]
			w.(http.Flusher).Flush()
			v.world.Point(id)
		}
	case "echo":
		http.NewResponseController(w).EnableFullDuplex()
		// The answer begins before the body has ended, if that is large.
		n, err := io.Copy(w, r.Body)
		if err != nil && n > 0 {
			panic(http.ErrAbortHandler)
		}
	case "sum":
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		h["X-Read"] = []string{strconv.FormatInt(n, 10)}
		w.Write(b)
	case "some":
		io.ReadFull(r.Body, make([]byte, part))
		w.Write(b)
	case "late":
		done := make(chan struct{})
		go func() {
			defer close(done)
			v.world.Point(id)
			io.Copy(io.Discard, r.Body)
		}()
		<-done
		w.Write(b)
	case "abort":
		w.Write(b[:len(b)/2])
		panic(http.ErrAbortHandler)
	case "gone":
		// Waits until its client has disconnected, or for a while.
		select {
		case <-r.Context().Done():
		case <-time.After(time.Duration(part) * time.Microsecond):
		}
		v.world.Point(id)
		w.Write(b)
	case "after":
		// Waits until its client has the responses before this one: what they are queued in
		// must not wait for this handler.
		select {
		case <-v.turn(id):
		case <-r.Context().Done():
		case <-time.After(30 * time.Second):
			h["X-Late"] = []string{"1"}
		}
		v.turns.Delete(id)
		v.world.Point(id)
		w.Write(b)
	default:
		http.Error(w, "kind", 400)
	}
}

// turn is what the handler of a request of the kind "after" waits for. The client makes it
// when it asks, and closes it.
func (v *served) turn(id uint64) chan struct{} {
	c, _ := v.turns.LoadOrStore(id, make(chan struct{}))
	return c.(chan struct{})
}

// conns lists the connections that are open.
func (v *served) conns() (s string) {
	for _, c := range v.OpenConnections(10) {
		s += fmt.Sprintf("\n\t%+v", c)
	}
	return s
}

// holds checks what must be so after each step.
func (v *served) holds() error {
	if v.fleet != nil {
		return v.fleet.holds()
	}
	return v.counts(v.kernel.Open())
}

// counts checks what v counts; open is how many descriptors are open.
func (v *served) counts(open int) error {
	conns := v.inside.Conns()
	switch {
	case conns < 0 || v.MaxConns > 0 && conns > v.MaxConns:
		return fmt.Errorf("%d connections count; at most %d may", conns, v.MaxConns)
	case conns > open:
		return fmt.Errorf("%d connections count, and %d descriptors are open", conns, open)
	case open > v.setup.limit:
		return fmt.Errorf("%d descriptors are open; at most %d can be", open, v.setup.limit)
	}
	return nil
}

// left checks that a server which has ended has left nothing.
func (v *served) left() error {
	var errs []error
	if n := v.kernel.Open(); n != 0 {
		errs = append(errs, fmt.Errorf("%d descriptors are open at the end", n))
	}
	if n := v.inside.Conns(); n != 0 {
		errs = append(errs, fmt.Errorf("%d connections count at the end", n))
	}
	if v.MaxHandlers == 0 {
	} else if n := v.inside.Waiting(); n != 0 {
		errs = append(errs, fmt.Errorf("%d requests wait at the end", n))
	}
	if n := v.running.Load(); n != 0 {
		errs = append(errs, fmt.Errorf("%d handlers run at the end", n))
	}
	if l := v.logged(); strings.Contains(l, "panic") {
		errs = append(errs, fmt.Errorf("the log has a panic: %.2000s", l))
	}
	for _, f := range v.ends {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}
