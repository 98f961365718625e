package websocket

import (
	"net"
	"testing"

	"github.com/chert-http/chert/internal/outbox/outboxtest"
)

// Over a hijacked net.Conn is accepted and refused what is on other carriers.
func TestOfferRule(t *testing.T) {
	t.Parallel()
	outboxtest.Offers(t, func() outboxtest.Carrier {
		nc, client := net.Pipe()
		l := newNetLink(nc, new(Conn))
		t.Cleanup(func() {
			client.Close()
			nc.Close()
			l.out.Carried()
			l.clock.End()
		})
		return outboxtest.Carrier{Offer: func(p []byte, limit int) (bool, error) {
			return l.Offer(p[:len(p)/2], p[len(p)/2:], limit)
		}}
	})
}
