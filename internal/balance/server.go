package balance

import (
	"math"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// State is what health checks know of a server.
type State uint32

const (
	// Unknown is the state of a new Server. It is used as if it were up.
	Unknown State = iota
	Up
	// Probing servers have been ejected and get one request at a time.
	Probing
	// Ejected servers have failed requests. They get none, but see the panic rule.
	Ejected
	// Down servers have failed active checks, and get no requests.
	Down

	states
)

// String returns the state in lower case.
func (s State) String() string {
	if s >= states {
		return "invalid"
	}
	return [states]string{"unknown", "up", "probing", "ejected", "down"}[s]
}

// up reports whether s counts as up in the panic rule.
func (s State) up() bool { return s == Unknown || s == Up }

// The bits of Server.state:
//
//	0-7  the State
//	8    the server drains
//	9    it drains, and has lost its sessions: it was not up when it began to, or has not been since
const (
	stateBits = 0xff
	draining  = 1 << 8
	left      = 1 << 9
)

// The two lowest bits of Server.ramp, which are nothing in nanoseconds.
const (
	ramps   = 1 << 0 // always set
	drained = 1 << 1 // the server drained before, and has kept its sessions
)

// changes counts changes of any Server's state. A Set compares it with what it has been
// prepared for, so that Acquire reads one word instead of all states. It is the process's
// since servers are in several Sets, which they do not know.
var changes struct {
	_ [cacheLines]byte
	n atomic.Uint64
	_ [cacheLines]byte
}

// cacheLines is two cache lines: processors fetch them in pairs.
const cacheLines = 128

// Server is an address that gets requests, with what all Sets that it is in share about it.
// All methods are safe for concurrent use.
type Server struct {
	addr string // immutable
	hash uint64 // of addr; immutable

	// Rarely written.
	state atomic.Uint32
	ramp  atomic.Int64 // when the slow start began, with ramps and drained in it; 0 is none

	_        [cacheLines]byte
	inFlight atomic.Int64  // acquired and not released
	latency  atomic.Uint64 // a sample
	_        [cacheLines]byte
}

// NewServer returns the server at addr, in state Unknown. Its place in a hash is that of
// addr as it is written, which should be what the configuration has.
func NewServer(addr string) *Server {
	return &Server{addr: addr, hash: xxhash.Sum64String(addr)}
}

// Addr returns the address.
func (s *Server) Addr() string { return s.addr }

// State returns the state that SetState has set last.
func (s *Server) State() State { return State(s.state.Load() & stateBits) }

// Draining reports what SetDraining has set last.
func (s *Server) Draining() bool { return s.state.Load()&draining != 0 }

// SetState sets the state. A server that becomes Up or Unknown after Probing, Ejected or
// Down begins its slow start.
func (s *Server) SetState(to State, now int64) {
	for {
		old := s.state.Load()
		from := State(old & stateBits)
		if from == to {
			return
		}
		if to.up() && !from.up() {
			s.begin(now, 0)
		}
		keep := old & (draining | left)
		if old&draining != 0 && !to.up() {
			keep |= left
		}
		if s.state.CompareAndSwap(old, uint32(to)|keep) {
			changes.n.Add(1)
			return
		}
	}
}

// SetDraining sets whether the server is about to leave, whatever its state. See the
// package's comment for what it gets then. A slow start follows.
func (s *Server) SetDraining(on bool, now int64) {
	var old uint32
	if on {
		if old = s.state.Or(draining); !State(old & stateBits).up() {
			s.state.Or(left)
		}
	} else {
		switch s.state.Load() & (draining | left) {
		case draining:
			s.begin(now, drained)
		case draining | left:
			s.begin(now, 0)
		}
		old = s.state.And(^uint32(draining | left))
	}
	if old&draining != 0 != on {
		changes.n.Add(1)
	}
}

// Warm begins a slow start, as of a server that has just been found by its name.
func (s *Server) Warm(now int64) {
	s.begin(now, 0)
	changes.n.Add(1)
}

// begin begins a slow start. It comes before a change of the state, which Sets read first.
func (s *Server) begin(now, bits int64) { s.ramp.Store(now&^drained | ramps | bits) }

// Release ends what a call of Acquire has begun. Each server that Acquire returns must be
// released once.
func (s *Server) Release() { s.inFlight.Add(-1) }

// acquire counts a request, if only is set on condition that there is no other.
func (s *Server) acquire(only bool) bool {
	if only {
		return s.inFlight.CompareAndSwap(0, 1)
	}
	s.inFlight.Add(1)
	return true
}

// Observe notes how long the server took for a response that has begun: d nanoseconds, as
// of now. Requests that failed should not be noted: errors are often fast, and make a broken
// server look like the best.
func (s *Server) Observe(d, now int64) {
	for {
		old := s.latency.Load()
		next := sample(old).with(d, now)
		if sample(old) == next || s.latency.CompareAndSwap(old, uint64(next)) {
			return
		}
	}
}

// Latency returns the peak-sensitive moving average of what Observe has noted, in
// nanoseconds, or 0 if it knows none.
func (s *Server) Latency(now int64) int64 {
	return int64(s.average(s.inFlight.Load(), now))
}

// average decays only while the server has nothing to do. If it has, its silence is no sign
// that it has become faster: one that hangs would look better from second to second.
func (s *Server) average(inFlight, now int64) float64 {
	l := sample(s.latency.Load())
	if inFlight > 0 {
		return l.value()
	}
	return l.value() * l.decay(tick(now))
}

// sample is a moving average and the time of its newest sample in one word, so that readers
// and writers need no lock:
//
//	32-63  the average in nanoseconds, a float32; 0 is none
//	0-31   the tick of its time
type sample uint64

// tickBits is the binary logarithm of a tick in nanoseconds, which is a millisecond. The
// count of ticks wraps after 52 days. A server without a response for that long may look as
// if it had just sent one, which the next response corrects.
const tickBits = 20

// tau is the time after which the weight of a sample is 1/e, in ticks.
const tau = 10e9 / (1 << tickBits)

func tick(now int64) uint32 { return uint32(now >> tickBits) }

func (l sample) value() float64 { return float64(math.Float32frombits(uint32(l >> 32))) }

// decay returns the weight of the average after the time to t. A clock that is behind that
// of the newest sample, as a loop's can be, makes no difference.
func (l sample) decay(t uint32) float64 {
	d := int32(t - uint32(l))
	if d == 0 || d < 0 && d > -1<<16 {
		return 1
	}
	return math.Exp(float64(uint32(d)) / -tau)
}

// with adds a sample. A latency above the average replaces it at once; one below lowers it
// by what the time since the newest sample is worth. Those within one tick of it are worth
// nothing, so the first of each tick speaks for all.
func (l sample) with(d, now int64) sample {
	v, t := l.value(), tick(now)
	w := l.decay(t)
	if w == 1 && v != 0 {
		t = uint32(l)
	}
	x := float64(max(d, 1))
	if x < v {
		x += (v - x) * w
	}
	return sample(math.Float32bits(float32(x)))<<32 | sample(t)
}
