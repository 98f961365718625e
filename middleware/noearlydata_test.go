package middleware

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

func TestNoEarlyData(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		state *tls.ConnectionState
		field []string
		want  int
	}{
		{"without TLS", nil, nil, 200},
		{"with TLS", &tls.ConnectionState{HandshakeComplete: true}, nil, 200},
		{"early", &tls.ConnectionState{}, nil, 425},
		{"early at a proxy", nil, []string{"1"}, 425},
		{"at a proxy, then with TLS", &tls.ConnectionState{HandshakeComplete: true}, []string{"1"}, 425},
		{"another value", nil, []string{"0"}, 425},
		{"no value", nil, []string{""}, 425},
		{"several", nil, []string{"1", "0"}, 425},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := NoEarlyData(hello)
			r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
			if r.TLS = tt.state; tt.field != nil {
				r.Header["Early-Data"] = tt.field
			}
			if h.ServeHTTP(w, r); w.Code != tt.want {
				t.Errorf("%d, want %d", w.Code, tt.want)
			}
			if tt.want == 425 && w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%v", w.Header())
			}
			var x wire.Exchange
			x.Reset(wire.Request{Method: "GET", TLS: tt.state != nil, Early: tt.state != nil && !tt.state.HandshakeComplete, Fields: wire.FieldsOf(r.Header)})
			if !h.(direct.Handler).ServeDirect((*direct.Exchange)(&x)) {
				t.Fatal("the fast path has declined")
			}
			if a := x.Finish(); a.Status != tt.want {
				t.Errorf("the fast path: %d, want %d", a.Status, tt.want)
			}
		})
	}
	if h := NoEarlyData(http.NotFoundHandler()); h == nil {
		t.Error("nil")
	} else if _, ok := h.(direct.Handler); ok {
		t.Error("a handler without the fast path has it")
	}
}
