package chert

import (
	"context"
	"os"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testhook"
)

func init() {
	testhook.Of = func(s any) testhook.Server { return hook{s.(*Server)} }
}

// hook is a Server as tests in other packages see it.
type hook struct{ s *Server }

func (h hook) Layer(f func() conn.Layer) { h.s.layer = f }
func (h hook) DrainFor(d time.Duration)  { h.s.drainFor = d }
func (h hook) Kernel(k *testhook.Kernel) { h.s.kernel = k }
func (h hook) Frugal()                   { h.s.frugal = true }
func (h hook) KeepAlives() bool          { return !h.s.noKeepAlives.Load() }
func (h hook) Ending() bool              { return h.s.stopping.Load() }

func (h hook) Handshakes(slots, places int) {
	h.s.shaking.Slots, h.s.shaking.Goroutines = slots, places
}

func (h hook) Run(ctx context.Context, grace time.Duration, serve []func() error, signals <-chan os.Signal) error {
	return run(ctx, h.s, grace, serve, stops{signals: signals, now: func() time.Time { return time.Time{} }})
}

func (h hook) Stopping() <-chan struct{} {
	h.s.lock()
	defer h.s.mu.Unlock()
	return h.s.told
}

func (h hook) Conns() int {
	h.s.lock()
	defer h.s.mu.Unlock()
	return h.s.gate.Open()
}

func (h hook) Waiting() int {
	h.s.lock()
	defer h.s.mu.Unlock()
	return h.s.slots.Waiting()
}
