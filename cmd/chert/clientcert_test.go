package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

const clientCertSites = `
[defaults]
tls_cert = "%[1]s/s.pem"
tls_key = "%[1]s/s-key.pem"
[[site]]
hosts = "a.example"
root = "www"
client_ca = "%[1]s/one.pem"
client_certificate = "optional"
[[site.route]]
path = "/team/{path...}"
root = "team"
client_certificate = "required"
[[site.route]]
path = "/ops/{path...}"
root = "team"
client_certificate = ["alice", "*.ops.example"]
[[site]]
hosts = "open.example"
root = "www"
[[site]]
hosts = "all.example"
root = "www"
client_ca = "%[1]s/one.pem"
client_certificate = ["alice"]
[[site.route]]
path = "/any/{path...}"
root = "team"
client_certificate = "required"
`

// A route needs a certificate, or one with a name, where the site asks for one: over both
// protocols, with sessions that are resumed, and never in plain text, nor on a connection that was
// made for another site.
func TestClientCertificateRoutes(t *testing.T) {
	t.Parallel()
	needSignals(t)
	ca, one, dir := newCA(t), newCA(t), t.TempDir()
	ca.server(dir, "s", "a.example", "open.example", "all.example")
	write(t, filepath.Join(dir, "one.pem"), string(one.pair.Cert))
	listen := "[[listen]]\naddress = '127.0.0.1:0'\n[[listen]]\naddress = '127.0.0.1:0'\ntls = false\n"
	file := filepath.Join(folder(t, map[string]string{"www/f": "of www", "team/f": "of team"}), "chert.toml")
	text := listen + fmt.Sprintf(clientCertSites, filepath.ToSlash(dir))
	write(t, file, text)
	p := start(t, "--config", file)
	alice, bob, other := one.client("alice"), one.client("bob"), newCA(t).client("alice")
	sessions := map[string]tls.ClientSessionCache{}
	get := func(proto, sni, host, path, who string) int {
		t.Helper()
		cfg := &tls.Config{RootCAs: ca.pool, ServerName: sni, NextProtos: []string{proto}}
		switch who {
		case "alice":
			cfg.Certificates = []tls.Certificate{alice}
		case "bob":
			cfg.Certificates = []tls.Certificate{bob}
		case "other":
			cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &other, nil }
		}
		key := proto + sni + who
		if sessions[key] == nil {
			sessions[key] = tls.NewLRUClientSessionCache(4)
		}
		cfg.ClientSessionCache = sessions[key]
		protocols := new(http.Protocols)
		protocols.SetHTTP1(proto == "http/1.1")
		protocols.SetHTTP2(proto == "h2")
		tr := &http.Transport{TLSClientConfig: cfg, Protocols: protocols}
		defer tr.CloseIdleConnections()
		r, err := http.NewRequest("GET", strings.TrimSuffix(p.urls[0], "/")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		res, err := (&http.Client{Transport: tr}).Do(r)
		if err != nil {
			return 0
		}
		defer res.Body.Close()
		io.Copy(io.Discard, res.Body)
		return res.StatusCode
	}
	for _, proto := range []string{"http/1.1", "h2"} {
		for range 3 { // later ones with tickets
			for _, tt := range []struct {
				sni, host, path, who string
				want                 int
			}{
				{"a", "a", "/f", "", 200}, {"a", "a", "/f", "alice", 200}, {"a", "a", "/f", "other", 0},
				{"a", "a", "/team/f", "", 403}, {"a", "a", "/team/f", "alice", 200}, {"a", "a", "/team/f", "bob", 200},
				{"a", "a", "/ops/f", "", 403}, {"a", "a", "/ops/f", "alice", 200}, {"a", "a", "/ops/f", "bob", 403},
				{"a", "a", "/%74eam/f", "", 403}, {"a", "a", "/x/../team/f", "", 403},
				{"open", "open", "/f", "", 200}, {"open", "a", "/team/f", "alice", 421}, {"open", "a", "/f", "", 421},
				{"all", "all", "/f", "", 0}, {"all", "all", "/f", "alice", 200}, {"all", "all", "/f", "bob", 403}, {"all", "all", "/any/f", "bob", 200},
				{"all", "a", "/team/f", "alice", 421}, {"a", "all", "/f", "", 421}, {"a", "all", "/f", "alice", 421},
			} {
				if got := get(proto, tt.sni+".example", tt.host+".example", tt.path, tt.who); got != tt.want {
					t.Errorf("%s, %+v: %d", proto, tt, got)
				}
			}
		}
	}
	c := newClient(t, "")
	for path, want := range map[string]int{"f": 200, "team/f": 403, "ops/f": 403} {
		if got := send(t, c, p.urls[1], path, "a.example", nil).status; got != want {
			t.Errorf("plain, %s: %d, not %d", path, got, want)
		}
	}
	// The authority of the certificate is not one any more: on connections from before, too.
	kept := mustDialTLS(t, p.urls[0], &tls.Config{RootCAs: ca.pool, ServerName: "a.example", Certificates: []tls.Certificate{alice}})
	kept.want("a.example", 200, "of www")
	write(t, filepath.Join(dir, "one.pem"), string(newCA(t).pair.Cert))
	p.reload()
	kept.want("a.example", 421, "")
	if got := get("h2", "a.example", "a.example", "/team/f", "alice"); got == 200 {
		t.Error("a certificate of an authority of before was accepted")
	}
}
