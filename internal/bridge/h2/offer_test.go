package h2

import (
	"testing"

	"github.com/chert-http/chert/internal/outbox/outboxtest"
)

// Streams that outlive their handlers, and tunnels, accept and refuse what other carriers
// do. The client has opened no window.
func TestOfferRule(t *testing.T) {
	t.Parallel()
	outboxtest.Offers(t, func() outboxtest.Carrier {
		_, st, _, out, _ := outliving(0)
		t.Cleanup(st.dropRestLocked)
		return outboxtest.Carrier{Offer: func(p []byte, limit int) (bool, error) { return out.Offer(p, len(p), limit) }}
	})
	outboxtest.Offers(t, func() outboxtest.Carrier {
		_, st, _, _, _ := outliving(0)
		t.Cleanup(st.dropRestLocked)
		st.lasting = nil
		st.Stream().Share()
		return outboxtest.Carrier{Offer: func(p []byte, limit int) (bool, error) {
			return st.Stream().Offer(p[:len(p)/2], p[len(p)/2:], limit)
		}}
	})
}
