package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

// TLS serves h and, from the first GET /debug/tls on, the same with TLS at the address that it answers with. The
// server's configuration must have a Certificate.
func TLS(h http.Handler, listen func(network, addr string) (net.Listener, error), serveTLS func(l net.Listener, certFile, keyFile string) error) http.Handler {
	addr := sync.OnceValues(func() (string, error) {
		l, err := listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		go serveTLS(l, "", "")
		return l.Addr().String(), nil
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/tls" { // not by a ServeMux, which costs a request more
			h.ServeHTTP(w, r)
			return
		}
		a, err := addr()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		io.WriteString(w, a)
	})
}

// Certificate makes a self-signed certificate of the most common kind: ECDSA with P-256. It has a name as Caddy takes none
// without.
func Certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
