package accept

import (
	"math"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
)

// Places are those of a PacketServer's connections: each needs one of the server's, and one of
// their own. Its methods are safe for concurrent use.
type Places struct {
	own, all *loop.Gate
	room     Room   // for own
	seek     func() // for all
}

// NewPlaces returns most places: 0 is a quarter of the server's, 64 at least; negative is no limit
// beside the server's. some returns up to n of the connections, in a random order.
func NewPlaces[C conn.Driven](h *PacketHost, most int, some func(n int) []C) *Places {
	if most == 0 {
		most = int(min(max(h.Gate.Max()/4, 64), math.MaxInt32))
	}
	p := &Places{own: loop.NewGate(most, 0), all: h.Gate, seek: h.Seek}
	p.room.Streams = func(n int) []conn.Driven {
		var all []conn.Driven
		for _, c := range some(n) {
			all = append(all, c)
		}
		return all
	}
	p.room.Loops = func() []*loop.Loop { return nil }
	return p
}

// Enter takes places for a connection and reports whether there were any. Otherwise an idle
// connection gives way to the next.
func (p *Places) Enter() bool {
	if !p.own.Enter() {
		p.room.Seek()
		return false
	}
	if !p.all.Enter() {
		p.own.Leave("")
		p.seek()
		return false
	}
	return true
}

// Leave releases the places of a connection; peer is what the server's Gate has admitted.
func (p *Places) Leave(peer string) {
	p.all.Leave(peer)
	p.own.Leave("")
}

// Crowded reports whether three quarters of either are taken.
func (p *Places) Crowded() bool { return p.own.Crowded() || p.all.Crowded() }
