package h2

import (
	"fmt"
	"testing"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/peer"
)

// clientLink is a quietLink of a client with an address.
type clientLink struct {
	quietLink
	addr string
}

func (l *clientLink) Peer() peer.Peer  { return peer.Parse(l.addr) }
func (l *clientLink) Buffered() []byte { return nil }
func (l *clientLink) Share()           {}

// Connections of loops that have come together, and then are idle, do not end together.
func TestIdleSpread(t *testing.T) {
	t.Parallel()
	const idle = 1e12
	cfg := &Config{Config: new(bridge.Config), IdleTime: idle}
	ends := map[int64]bool{}
	for i := range 100 {
		l := &clientLink{addr: fmt.Sprintf("192.0.2.1:%d", 40000+i)}
		s := cfg.New(l, nil, nil)
		s.Data(false)
		s.mu.Lock()
		in := s.idleByLocked() - s.since
		s.mu.Unlock()
		if in > idle || in < idle-4e9 {
			t.Fatalf("a connection is idle for %d ns", in)
		}
		ends[in] = true
	}
	if len(ends) < 90 {
		t.Errorf("100 connections end at %d times", len(ends))
	}
}
