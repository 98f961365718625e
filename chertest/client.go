package chertest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// transport is for the server's own client.
func (s *Server) transport(cfg *tls.Config) *http.Transport {
	var dialer net.Dialer
	t := &http.Transport{TLSClientConfig: cfg}
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

// selfSigned is a certificate for the loopback addresses and example.com. It
// is made once for a process, so that a test which keeps one server's
// certificate can use it with another.
var selfSigned = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic("chertest: " + err.Error())
	}
	// Valid at any time that a test may make its clock show.
	about := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{Organization: []string{"chertest"}},
		NotBefore:             time.Unix(0, 0),
		NotAfter:              time.Date(2084, time.January, 29, 0, 0, 0, 0, time.UTC),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true, // so that it can stand in a pool of roots
		DNSNames:              []string{"example.com", "*.example.com"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		panic("chertest: " + err.Error())
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})
