package sites

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/testing/freeport"
)

// haproxyFile balances connections without looking into them. Its checks begin with headers too.
const haproxyFile = `
global
	maxconn 100
defaults
	mode tcp
	timeout connect 10s
	timeout client 60s
	timeout server 60s
listen all
	bind FRONT
	server one BACK SEND check check-send-proxy inter 100ms
`

// The client of a balancer of connections, HAProxy, is the one that its PROXY protocol names, for
// chert and for nginx: in plain text and through TLS, which only chert ends.
func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	haproxy, err := exec.LookPath("haproxy")
	if err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatal("haproxy is not installed; want the package haproxy")
		}
		t.Skip("the package haproxy is not installed")
	}
	cert, key, roots := certificate(t, "example.com")
	files := map[string]string{"www/f.txt": "file", "cert.pem": cert, "key.pem": key}
	// Of the addresses of this machine only 127.0.0.2 is admitted, and it is not the balancer's.
	chert, nginx := both(t, `
[[listen]]
address = "ADDR"
proxy_protocol = "127.0.0.1"
[[site]]
hosts = "*"
root = "www"
allow = "127.0.0.2"
`, `
server {
	listen ADDR proxy_protocol;
	set_real_ip_from 127.0.0.1;
	real_ip_header proxy_protocol;
	allow 127.0.0.2;
	deny all;
	root www;
}
`, files)
	overTLS, _ := both(t, `
[[listen]]
address = "ADDR"
proxy_protocol = "127.0.0.1"
[[site]]
hosts = "*"
root = "www"
allow = "127.0.0.2"
tls_cert = "cert.pem"
tls_key = "key.pem"
`, "server { listen ADDR; }", files)
	for _, send := range []string{"send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options ssl,unique-id,crc32c"} {
		for name, behind := range map[string]*server{"chert": chert, "nginx": nginx, "chert, TLS": overTLS} {
			front := &server{plain: freeport.Addr(t)}
			file := filepath.Join(t.TempDir(), "haproxy.cfg")
			text := strings.NewReplacer("FRONT", front.plain, "BACK", behind.plain, "SEND", send).Replace(haproxyFile)
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			front.start(t, exec.Command(haproxy, "-db", "-f", file))
			for source, want := range map[string]int{"127.0.0.2": 200, "127.0.0.3": 403} {
				if got, err := getFrom(source, front.plain, name == "chert, TLS", roots); err != nil || got != want {
					t.Errorf("%s, %s, from %s: %d %v, not %d", name, send, source, got, err, want)
				}
			}
		}
	}
}

// getFrom asks for a file from an address of this machine, and returns the status.
func getFrom(source, addr string, encrypted bool, roots *x509.CertPool) (status int, err error) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	tr := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", addr)
		},
	}
	defer tr.CloseIdleConnections()
	url := "http://example.com/f.txt"
	if encrypted {
		url = "https://example.com/f.txt"
	}
	for range 2 { // the second is served from memory
		res, err := (&http.Client{Transport: tr}).Get(url)
		if err != nil {
			return 0, err
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if encrypted && res.ProtoMajor != 2 {
			return 0, fmt.Errorf("%s", res.Proto)
		}
		status = res.StatusCode
	}
	return status, nil
}
