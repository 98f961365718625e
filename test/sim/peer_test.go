//go:build linux

package sim

import (
	"crypto/tls"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sim"
)

// peer is what clients of all protocols have: one connection at a time, and what went
// over it last.
type peer struct {
	v    *served
	d    *sim.Dice
	no   int
	left int // what is to be done yet: requests, messages, events
	calm bool
	// stays: it ends no connection before all is done, so that none of a crowd lets others in.
	stays bool
	plain bool // it dials without TLS, also when the server expects it
	// civil: it sends no bad records. The server's side reads and writes on two goroutines, and
	// crypto/tls sends its alert under a lock, for which one of them might stop the bubble's clock.
	civil bool

	protos []string               // for ALPN; nil: HTTP/1.1, without it
	cache  tls.ClientSessionCache // nil: no session is resumed

	s   line   // nil without a connection
	at  string // its address
	out []byte // to be sent
	// sent counts the bytes of all connections.
	sent int
	in   []byte // received and not used
	// excused is why the connection may end without all that is due; empty: it may not.
	excused string
	closing bool // nothing more is asked for
	half    bool // the client has sent its last byte
	pauseTo int64
	// activeAt is when something was last sent or received, quiet how long before the end that was.
	activeAt, quiet int64
	over            bool

	done   int // what was received whole
	denied int // responses of 503 and 408
	failed func(error)
	trace  [32]event
	traced int
}

// base is for the methods of model that all clients have in common.
func (p *peer) base() *peer { return p }

// event is what has happened on a connection, written out only if it is asked for.
type event struct {
	at   int64
	what string
	a, b int
	err  error
}

func (e event) String() string {
	if e.err != nil {
		return fmt.Sprintf("%.6f %s: %v, %d, %d", float64(e.at)/1e9, e.what, e.err, e.a, e.b)
	}
	return fmt.Sprintf("%.6f %s %d, %d", float64(e.at)/1e9, e.what, e.a, e.b)
}

func (p *peer) note(what string, a, b int) { p.noteEnd(what, nil, a, b) }

func (p *peer) noteEnd(what string, err error, a, b int) {
	p.trace[p.traced%len(p.trace)] = event{p.v.world.Now(), what, a, b, err}
	p.traced++
}

// history returns the connection's last events.
func (p *peer) history() (s string) {
	for i := max(0, p.traced-len(p.trace)); i < p.traced; i++ {
		s += "\n\t" + p.trace[i%len(p.trace)].String()
	}
	return s
}

func (p *peer) fail(format string, args ...any) {
	p.failed(fmt.Errorf("client %d: "+format+"%s", append(append([]any{p.no}, args...), p.history())...))
	p.over = true
}

// Next implements sim.Actor.
func (p *peer) Next() int64 {
	if p.over || p.pauseTo == 0 {
		return poll.Never
	}
	return p.pauseTo
}

// paused reports whether the client does nothing for now.
func (p *peer) paused() bool {
	if p.pauseTo > 0 && p.v.world.Now() < p.pauseTo {
		return true
	}
	p.pauseTo = 0
	return false
}

func (p *peer) pause(most time.Duration) { p.pauseTo = p.v.world.Now() + p.d.Int64N(int64(most)) + 1 }

// maybePause makes the client a slow one now and then.
func (p *peer) maybePause() {
	if p.d.OneIn(5000) && !p.over {
		p.pause(time.Second) // less than a server lingers
	}
}

// dial connects, and reports whether it has; otherwise the client tries again later, unless
// the server ends.
func (p *peer) dial() bool {
	room := 1 << 16
	if p.d.OneIn(4) {
		room = 16 + p.d.IntN(8<<10)
	}
	if p.v.fleet != nil {
		p.v = p.v.fleet.pick()
	}
	p.at = "10.0.0." + strconv.Itoa(1+p.no%250) + ":" + strconv.Itoa(1024+p.d.IntN(60000))
	s := p.v.dial(p.at, room)
	if s == nil {
		p.pauseTo = p.v.world.Now() + int64(10*time.Millisecond)
		p.over = p.v.over()
		return false
	}
	p.s, p.out, p.in, p.excused = s, p.out[:0], p.in[:0], ""
	if p.v.setup.secure && !p.plain {
		p.s = newSecure(s, p.config())
	}
	p.closing, p.half = false, false
	p.note("connected, room", room, 0)
	return true
}

// mayEndUnanswered reports whether the server may end a connection by err before its first response.
func (p *peer) mayEndUnanswered(err error) bool {
	return p.v.inside.Ending() || !p.calm && (p.v.cutsAllowed() || err == syscall.ECONNRESET || p.unshaken(err))
}

// leave ends the connection at once.
func (p *peer) leave() {
	if p.d.IntN(2) == 0 {
		p.note("reset", 0, 0)
		p.s.Reset()
		return
	}
	p.note("closed", 0, 0)
	p.s.Close()
	for p.s.Arrive(1 << 30) {
	}
}

// push sends a part of out.
func (p *peer) push() bool {
	if p.spoil() {
		return true
	}
	if len(p.out) == 0 || p.half {
		return false
	}
	n := p.d.Part(len(p.out))
	if !p.s.Send(p.out[:n]) {
		p.out = p.out[:0] // the end is about to be received
		return false
	}
	p.sent += n
	p.out = append(p.out[:0], p.out[n:]...) // keeps the memory
	p.activeAt = p.v.world.Now()
	return true
}

// arrive lets some of what was sent arrive.
func (p *peer) arrive() bool {
	if !p.s.Unarrived() || p.d.Strikes(sim.LateBytes) {
		return false
	}
	n := 1 << 30
	if p.d.OneIn(8) {
		n = 1 + p.d.IntN(200)
	}
	p.s.Arrive(n)
	p.activeAt = p.v.world.Now()
	return true
}

// pull adds some of what the server has sent to in. The error is the end of that.
func (p *peer) pull() (did bool, err error) {
	if p.d.OneIn(16) {
		return false, nil
	}
	buf := p.v.scratch[:p.d.Part(len(p.v.scratch))]
	n, err := p.s.Receive(buf)
	p.in = append(p.in, buf[:n]...)
	did = n > 0 || err != nil
	if t, ok := p.s.(*secure); ok && t.moved {
		did = true
	}
	if did {
		now := p.v.world.Now()
		if err == nil {
			p.activeAt = now
		}
		p.quiet = now - p.activeAt
	}
	if p.calm && truncated(p.s, err) {
		p.fail("the end came without close_notify")
	}
	return did, err
}
