package middleware

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// shown is the state of a connection on which certificates were shown and, with verified, accepted.
func shown(cert *x509.Certificate, verified bool) *tls.ConnectionState {
	state := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	if verified {
		state.VerifiedChains = [][]*x509.Certificate{{cert, {}}}
	}
	return state
}

func TestClientCert(t *testing.T) {
	t.Parallel()
	spiffe, _ := url.Parse("spiffe://example.com/a/B")
	cert := &x509.Certificate{
		Subject: pkix.Name{CommonName: "ann"}, DNSNames: []string{"a.ops.example", "*.wild.example", "b.example"},
		EmailAddresses: []string{"Ann@example.com"}, URIs: []*url.URL{spiffe}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1), net.ParseIP("2001:db8::1")},
	}
	for _, tt := range []struct {
		names string
		want  bool
	}{
		{"ann", true}, {"Ann", false}, {"a.ops.example", true}, {"A.OPS.example", true}, {"*.ops.example", true}, {"*.OPS.example", true},
		{"ops.example", false}, {"*.example", true}, {"*.wild.example", false}, {"x.wild.example", false}, {"*.b.example", false}, {"*.a.ops.example", false},
		{"Ann@EXAMPLE.com", true}, {"ann@example.com", false}, {"Ann@example.org", false}, {"example.com", false},
		{"spiffe://example.com/a/B", true}, {"spiffe://example.com/a/b", false}, {"192.0.2.1", true}, {"::ffff:192.0.2.1", true}, {"192.0.2.2", false},
		{"2001:db8:0::1", true}, {"nobody b.example", true}, {"nobody", false},
	} {
		mw := Must(ClientCert(&ClientCertOptions{Names: strings.Fields(tt.names)}))
		h := mw(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user := UserOf(r.Context()); user != "ann" {
				t.Errorf("%s: the user is %q", tt.names, user)
			}
		}))
		for _, verified := range []bool{true, false} {
			r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
			r.TLS = shown(cert, verified)
			if h.ServeHTTP(w, r); (w.Code == 200) != (tt.want && verified) {
				t.Errorf("%s, verified %v: %d", tt.names, verified, w.Code)
			}
		}
	}
}

// Without names any verified certificate is enough; with an empty list none is.
func TestClientCertAny(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o     *ClientCertOptions
		state *tls.ConnectionState
		want  int
	}{
		{nil, shown(&x509.Certificate{}, true), 200}, {nil, shown(&x509.Certificate{}, false), 403}, {nil, nil, 403}, {nil, &tls.ConnectionState{}, 403},
		{&ClientCertOptions{Names: []string{}}, shown(&x509.Certificate{Subject: pkix.Name{CommonName: "a"}}, true), 403},
	} {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.TLS = tt.state
		h := Must(ClientCert(tt.o))(direct.NewResponse(200, nil, nil))
		if h.ServeHTTP(w, r); w.Code != tt.want {
			t.Errorf("%+v: %d, not %d", tt, w.Code, tt.want)
		}
		var x wire.Exchange
		x.Reset(wire.Request{Method: "GET", TLS: tt.state != nil, Fields: wire.FieldsOf(http.Header{})})
		if h.(direct.Handler).ServeDirect((*direct.Exchange)(&x)) {
			t.Errorf("%+v: the fast path has answered", tt)
		}
	}
	for _, name := range []string{"", "*.", "a.*", "*.*.example", "*"} {
		if _, err := ClientCert(&ClientCertOptions{Names: []string{name}}); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}
