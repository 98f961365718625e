//go:build linux || darwin

package conn

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// hour stands for a limit that does not matter.
const hour = int64(time.Hour)

// moment is a limit that is to pass.
const moment = int64(20 * time.Millisecond)

func TestMain(m *testing.M) {
	servertest.Main(m, func() {
		servertest.UseTCP()
		if l, err := loop.New(); err == nil {
			l.Discard()
		}
	})
}

var pair, tcpPair servertest.Pair = servertest.Unix, servertest.TCP

type client = servertest.Client

// rig is a running loop.
type rig struct {
	t      testing.TB
	loop   *loop.Loop
	shared *Shared
}

// newRig runs a loop until the test's end. Limits that are 0 do not matter.
func newRig(t testing.TB, lim Limits) *rig {
	t.Helper()
	for _, l := range []*int64{&lim.ReadStall, &lim.WriteStall} {
		if *l == 0 {
			*l = hour
		}
	}
	l, err := loop.New()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t, l, &Shared{Limits: lim, Gate: loop.NewGate(0, 0)}}
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	t.Cleanup(func() {
		l.Do(func() {
			l.Broadcast(Kill)
			l.Retire()
		})
		if err := servertest.Await(t, done, "the loop's end"); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return r
}

// open starts f on one end of a socket pair and returns the other.
func (r *rig) open(f *fake) *client {
	r.t.Helper()
	fd, nc := pair(r.t)
	return r.start(f, fd, nc)
}

func (r *rig) start(f *fake, fd int, nc net.Conn) *client {
	r.t.Helper()
	f.t = r.t
	if f.serve == nil {
		f.serve = echo
	}
	f.gone, f.closed = make(chan bool, 10), make(chan bool)
	r.shared.Gate.Enter()
	r.on(func() {
		first := int64(0)
		if f.first > 0 {
			first = r.loop.Now() + f.first
		}
		local := nc.RemoteAddr()
		if err := f.Open(r.loop, fd, "peer", &local, f, r.shared, first); err != nil {
			r.t.Errorf("Open: %v", err)
		}
	})
	return servertest.NewClient(r.t, nc)
}

// on runs f on the loop and waits for it.
func (r *rig) on(f func()) {
	r.t.Helper()
	done := make(chan bool)
	r.loop.Do(func() { f(); close(done) })
	servertest.Await(r.t, done, "the loop")
}

// tell posts a Command as the server would.
func (r *rig) tell(f *fake, m Command) { r.loop.Post(f.handle, m) }

// alive checks that the loop serves others.
func (r *rig) alive() {
	r.t.Helper()
	for _, quick := range []bool{true, false} {
		c := r.open(&fake{quick: quick, serve: last})
		c.Send("alive\n")
		c.Want("alive\n")
		c.Close()
	}
}

// loopOwns waits until the loop owns f, with no user code running.
func (r *rig) loopOwns(f *fake) {
	r.t.Helper()
	servertest.Eventually(r.t, "the loop owns it", func() (ok bool) {
		r.on(func() { ok = f.state.Load()&owned == 0 })
		return ok
	})
}

// inPhase waits until the loop owns f in a phase.
func (r *rig) inPhase(f *fake, want phase) {
	r.t.Helper()
	servertest.Eventually(r.t, "the phase is reached", func() (ok bool) {
		r.on(func() { ok = f.phase == want && f.state.Load()&owned == 0 })
		return ok
	})
}

// taken waits until f has read n bytes in all, or serves a request, so that the
// next bytes come by themselves.
func (r *rig) taken(f *fake, n int) {
	r.t.Helper()
	servertest.Eventually(r.t, "the bytes have been read", func() (ok bool) {
		r.on(func() {
			ok = f.runs.Load() > 0 || f.state.Load()&owned != 0 || len(f.Buffered()) == n
		})
		return ok
	})
}

// counter is an atomic count that starts at zero.
type counter = atomic.Int32
