package main

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"testing"
)

// Plain HTTP beside TLS serves the same sites, without HSTS and never one of which clients
// need a certificate; another address has no HTTP/2.
func TestListenBlocks(t *testing.T) {
	t.Parallel()
	needSignals(t)
	ca, dir := newCA(t), t.TempDir()
	ca.server(dir, "a", "a.example", "b.example")
	write(t, filepath.Join(dir, "ca.pem"), string(ca.pair.Cert))
	sites := fmt.Sprintf(`
[defaults]
tls_cert = "%[1]s/a.pem"
tls_key = "%[1]s/a-key.pem"
hsts = "1h"
[[site]]
hosts = "a.example"
root = "a"
`, filepath.ToSlash(dir))
	guarded := fmt.Sprintf("[[site]]\nhosts = 'b.example'\nroot = 'b'\nclient_ca = '%s/ca.pem'\n", filepath.ToSlash(dir))
	const listen = "[[listen]]\naddress = '127.0.0.1:0'\n[[listen]]\naddress = '127.0.0.1:0'\ntls = false\n" +
		"[[listen]]\naddress = '127.0.0.1:0'\nprotocols = ['h1']\n"
	file := filepath.Join(folder(t, map[string]string{"a/f": "of a", "b/f": "of b"}), "chert.toml")
	write(t, file, listen+sites)
	p := start(t, "--config", file)
	if len(p.urls) != 3 {
		t.Fatalf("%q", p.urls)
	}
	both := []string{"h2", "http/1.1"}
	check := func() {
		t.Helper()
		for i, want := range map[int]string{0: "h2", 2: "http/1.1"} {
			c := mustDialTLS(t, p.urls[i], &tls.Config{RootCAs: ca.pool, ServerName: "a.example", NextProtos: both})
			if got := c.ConnectionState().NegotiatedProtocol; got != want {
				t.Errorf("%d: ALPN selected %q, want %q", i, got, want)
			}
			if c.Close(); i == 0 {
				c = mustDialTLS(t, p.urls[i], &tls.Config{RootCAs: ca.pool, ServerName: "a.example"})
			} else {
				c = mustDialTLS(t, p.urls[i], &tls.Config{RootCAs: ca.pool, ServerName: "a.example", NextProtos: both})
			}
			for range 3 { // on both paths
				if got := c.want("a.example", 200, "of a").Header["Strict-Transport-Security"]; len(got) != 1 || got[0] != "max-age=3600" {
					t.Errorf("%d: HSTS %q", i, got)
				}
			}
		}
		client := newClient(t, "")
		for range 3 {
			r := send(t, client, p.urls[1], "f", "a.example", nil)
			if r.status != 200 || r.body != "of a" || r.header["Strict-Transport-Security"] != nil {
				t.Errorf("plain: %+v", r)
			}
		}
	}
	check()

	write(t, file, listen+sites+guarded)
	p.reload()
	check()
	client := newClient(t, "")
	for _, host := range []string{"b.example", "B.example.:80", "c.example"} {
		for range 2 {
			if r := send(t, client, p.urls[1], "f", host, nil); r.status != 421 || r.header["Strict-Transport-Security"] != nil {
				t.Errorf("plain, %s: %+v", host, r)
			}
		}
	}
}
