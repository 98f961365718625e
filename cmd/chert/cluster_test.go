package main

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/testing/redistest"
)

const clusterSecret = "0123456789abcdef0123456789abcdef"

// chert check says what is shared, and what is wrong.
func TestCheckCluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	site := "[[site]]\nhosts = [\"*\"]\nroot = \".\"\n"
	limited := "[rate_limit]\nlimit = \"100/s\"\n"
	store := "store = \"redis://127.0.0.1:6379/0\"\n"
	long := "secret = \"" + clusterSecret + "\"\n"
	for _, tt := range []struct{ why, text, want string }{
		{"nothing but a store", "[cluster]\n" + store + site, "shared with other instances: nothing\n"},
		{"limits", "[cluster]\n" + store + limited + site, "instances: rate limits\n"},
		{"limits that are not", "[cluster]\n" + store + "limits = false\n" + limited + site, "instances: nothing\n"},
		{"a store of their own", "[cluster]\n" + store + limited + "store = \"redis://127.0.0.1:1\"\n" + site, "instances: nothing\n"},
		{"options of limits", "[cluster]\n" + store + limited + "failure = \"open\"\n" + site, "instances: rate limits\n"},
		{"TLS", "[cluster]\n" + store + long + site + "tls_self = true\n", "instances: TLS sessions\n"},
		{"ACME", "[cluster]\n" + store + long + strings.Replace(site, "*", "a.example.com", 1) + "tls_auto = true\n",
			"instances: certificates by ACME, TLS sessions\n"},
		{"no store", "[cluster]\n" + site, "[cluster] has no store"},
		{"a bad store", "[cluster]\nstore = \"http://h\"\n" + site, "store: bad URL"},
		{"no secret", "[cluster]\n" + store + site + "tls_self = true\n", "[cluster] has no secret"},
		{"none that is needed", "[cluster]\n" + store + "tickets = false\n" + site + "tls_self = true\n", "instances: nothing\n"},
		{"a short secret", "[cluster]\n" + store + "secret = \"sesame\"\n" + site, "the secret: it has 6 characters"},
		{"a misspelt key", "[cluster]\n" + store + "ticket = false\n" + site, "ticket"},
	} {
		file := filepath.Join(t.TempDir(), "c.toml")
		text := strings.ReplaceAll(tt.text, "root = \".\"", "root = \""+dir+"\"")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs := new(strings.Builder), new(strings.Builder)
		check(file, new(explainOptions), out, errs)
		if all := out.String() + errs.String(); !strings.Contains(all, tt.want) || strings.Contains(all, "sesame") {
			t.Errorf("%s: %s", tt.why, all)
		}
	}
}

// A session that one instance has begun is resumed by another, unless they have different secrets.
func TestClusterSessions(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	www := t.TempDir()
	instance := func(secret string) string {
		file := filepath.Join(t.TempDir(), "c.toml")
		text := "tls_storage = \"" + t.TempDir() + "\"\n[cluster]\nstore = \"" + srv.URL() + "\"\nsecret = \"" + secret +
			"\"\n[[site]]\nhosts = [\"*\"]\nroot = \"" + www + "\"\ntls_self = true\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := start(t, "--config", file, "--listen", "127.0.0.1:0")
		_, addr, _ := strings.Cut(strings.TrimSuffix(p.urls[0], "/"), "://")
		return addr
	}
	a, b, other := instance(clusterSecret), instance(clusterSecret), instance(clusterSecret+"x")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		cache := tls.NewLRUClientSessionCache(1)
		resumed := func(addr string) bool {
			t.Helper()
			_, port, _ := net.SplitHostPort(addr)
			c, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{ServerName: "h.example", ClientSessionCache: cache,
				InsecureSkipVerify: true, MaxVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: h.example\r\nConnection: close\r\n\r\n")
			io.Copy(io.Discard, c) // the tickets of TLS 1.3 come after the handshake
			return c.ConnectionState().DidResume
		}
		if resumed(a) {
			t.Error("there was no session yet")
		}
		for _, addr := range []string{b, a, b} {
			if !resumed(addr) {
				t.Errorf("version %x: the session of another instance was not resumed", version)
			}
		}
		if resumed(other) {
			t.Errorf("version %x: an instance with another secret has resumed the session", version)
		}
	}
}
