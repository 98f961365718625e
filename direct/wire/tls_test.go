package wire

import (
	"crypto/tls"
	"net/http/httptest"
	"testing"
)

func TestExchangeTLS(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{false, true} {
		var x Exchange
		if x.Reset(Request{Method: "GET", TLS: encrypted}); x.TLS() != encrypted {
			t.Errorf("fast path: %v, want %v", x.TLS(), encrypted)
		}
		r := httptest.NewRequest("GET", "/", nil)
		if encrypted {
			r.TLS = &tls.ConnectionState{}
		}
		var view Exchange
		if view.View(httptest.NewRecorder(), r); view.TLS() != encrypted {
			t.Errorf("ordinary path: %v, want %v", view.TLS(), encrypted)
		}
	}
}
