package tlsio

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"sync"
	"testing"
	"time"
)

var made struct {
	once sync.Once
	cert tls.Certificate
	err  error
}

// certificate is one for example.com.
func certificate(t testing.TB) tls.Certificate {
	t.Helper()
	made.once.Do(func() {
		var key *ecdsa.PrivateKey
		if key, made.err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); made.err != nil {
			return
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		}
		var der []byte
		der, made.err = x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		made.cert = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	})
	if made.err != nil {
		t.Fatal(made.err)
	}
	return made.cert
}
