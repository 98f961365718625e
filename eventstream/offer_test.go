package eventstream

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chert-http/chert/internal/outbox/outboxtest"
)

// blocking is a ResponseWriter whose client accepts nothing until it is closed.
type blocking struct {
	http.ResponseWriter
	end chan bool
}

func (w blocking) Write(p []byte) (int, error) {
	<-w.end
	return len(p), nil
}

// ended is a Source that is of no interest.
type ended struct{}

func (ended) Writable() {}
func (ended) Stop()     {}
func (ended) Closed()   {}

// Over an http.ResponseWriter is accepted and refused what is on other carriers.
func TestOfferRule(t *testing.T) {
	t.Parallel()
	outboxtest.Offers(t, func() outboxtest.Carrier {
		w := blocking{httptest.NewRecorder(), make(chan bool)}
		l := newWriter(w, httptest.NewRequest("GET", "/", nil), ended{})
		done := make(chan bool)
		go func() {
			defer close(done)
			l.run()
		}()
		t.Cleanup(func() {
			close(w.end)
			l.End(false)
			<-done
		})
		return outboxtest.Carrier{Offer: func(p []byte, limit int) (bool, error) { return l.Offer(p, len(p), limit) }}
	})
}
