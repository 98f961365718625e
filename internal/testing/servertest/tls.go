package servertest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// Certificate returns httptest's, which is for example.com and the loopback.
func Certificate(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s.TLS.Certificates[0], pool
}

// CertFiles writes Certificate's to files.
func CertFiles(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	cert, roots := Certificate(t)
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	return write("cert.pem", "CERTIFICATE", cert.Certificate[0]), write("key.pem", "PRIVATE KEY", key), roots
}

// TLSOver shakes hands on nc, offering protos.
func TLSOver(t *testing.T, nc net.Conn, roots *x509.CertPool, protos ...string) (*Client, string) {
	t.Helper()
	tc := tls.Client(nc, &tls.Config{RootCAs: roots, ServerName: "example.com", NextProtos: protos})
	if err := tc.Handshake(); err != nil {
		t.Fatal(err)
	}
	return Wrap(t, tc), tc.ConnectionState().NegotiatedProtocol
}
