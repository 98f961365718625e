package acmetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/letsencrypt/challtestsrv"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"

	"github.com/chert-http/chert/internal/testing/freeport"
)

// patience ends what hangs. No test waits for it otherwise.
const patience = 90 * time.Second

// pebble is an authority of a test. All names are this machine's.
type pebble struct {
	url   string // of the directory
	trust string // a file with the certificate of its own server
	roots *x509.CertPool
	ca    *ca.CAImpl
	db    *db.MemoryStore
	srv   *httptest.Server
}

// startPebble starts an authority that validates at these ports. Certificates are
// valid for some time.
func startPebble(t *testing.T, httpPort, tlsPort string, validity time.Duration) *pebble {
	t.Helper()
	quiet := log.New(io.Discard, "", 0)
	at := freeport.Port(t)
	dns, err := challtestsrv.New(challtestsrv.Config{Log: quiet, DNSAddrs: []string{"127.0.0.1:" + at}})
	if err != nil {
		t.Fatal(err)
	}
	dns.SetDefaultDNSIPv6("")
	go dns.Run()
	t.Cleanup(dns.Shutdown)

	p := &pebble{db: db.NewMemoryStore(), roots: x509.NewCertPool()}
	p.ca = ca.New(quiet, p.db, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {ValidityPeriod: uint64(validity / time.Second)}})
	p.roots.AppendCertsFromPEM(p.ca.GetRootCert(0).PEM())
	check := va.New(quiet, number(t, httpPort), number(t, tlsPort), false, "127.0.0.1:"+at, p.db)
	front := wfe.New(quiet, p.db, check, p.ca, []string{"ca.example"}, false, false, 1, 1)
	p.srv = httptest.NewUnstartedServer(withoutARI(front.Handler()))
	p.srv.Config.ErrorLog = quiet
	cert, text := selfSigned(t)
	p.srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	p.srv.StartTLS()
	t.Cleanup(p.srv.Close)
	p.url = p.srv.URL + wfe.DirectoryPath
	p.trust = filepath.Join(t.TempDir(), "pebble.pem")
	if err := os.WriteFile(p.trust, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// withoutARI hides the resource of RFC 9773 from clients. With it pebble refuses the
// renewal of some certificates, as it does not find the order that a new one
// replaces; whether it does depends on the serial number.
func withoutARI(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != wfe.DirectoryPath {
			h.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		var directory map[string]any
		if err := json.Unmarshal(rec.Body.Bytes(), &directory); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		delete(directory, "renewalInfo")
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(directory)
	})
}

// trusted are the roots for connections to the authority itself.
func (p *pebble) trusted(t *testing.T) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(p.trust)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return pool
}

func selfSigned(t *testing.T) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pebble"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func number(t *testing.T, port string) int {
	t.Helper()
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMain(m *testing.M) {
	// Pebble waits at random, refuses nonces at random, and reuses authorizations at
	// random, to test clients.
	os.Setenv("PEBBLE_VA_NOSLEEP", "1")
	os.Setenv("PEBBLE_WFE_NONCEREJECT", "20")
	os.Setenv("PEBBLE_AUTHZREUSE", "0")
	os.Exit(run(m))
}
