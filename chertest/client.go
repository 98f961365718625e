package chertest

import (
	"context"
	"crypto/tls"
	_ "embed" // for loopback
	"net"
	"net/http"
	"strings"
	"sync"
)

// transport is for the server's own client.
func (s *Server) transport(cfg *tls.Config) *http.Transport {
	var dialer net.Dialer
	t := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: s.EnableHTTP2}
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		//lint:ignore SA1019 a test may have set it, and httptest honours that too
		if dial := t.Dial; dial != nil {
			return dial(network, addr)
		}
		host, _, err := net.SplitHostPort(addr)
		if err == nil && (host == "example.com" || strings.HasSuffix(host, ".example.com")) {
			addr = s.Listener.Addr().String()
		}
		return dialer.DialContext(ctx, network, addr)
	}
	return t
}

// loopback is a certificate for the loopback addresses and example.com, and
// its key, which is public: a client that trusts it trusts anyone. It is RSA,
// as httptest's is, since tests choose cipher suites accordingly, and is
// embedded because generating one takes long. Valid until 2084, the root of
// itself:
//
//	openssl x509 -in chertest/loopback.pem -noout -text
//
//go:embed loopback.pem
var loopback []byte

// selfSigned is the same certificate for all servers, so that a test which
// keeps one server's certificate can use it with another.
var selfSigned = sync.OnceValue(func() tls.Certificate {
	cert, err := tls.X509KeyPair(loopback, loopback)
	if err != nil {
		panic("chertest: " + err.Error())
	}
	return cert
})
