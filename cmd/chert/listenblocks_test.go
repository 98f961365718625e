package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

	// Connections from before the reload, on which the fast path has served.
	before := keptPlain(t, p.urls[1])
	for range 3 {
		before.want("a.example", 200, "of a")
		before.want("b.example", 421, "")
	}
	h1 := mustDialTLS(t, p.urls[2], &tls.Config{RootCAs: ca.pool, ServerName: "a.example", NextProtos: both})
	h1.want("a.example", 200, "of a")
	write(t, file, listen+sites+guarded)
	p.reload()
	for range 3 {
		before.want("a.example", 200, "of a")
		h1.want("a.example", 200, "of a")
		for _, host := range []string{"b.example", "B.EXAMPLE.", "b.example:443"} {
			if got := before.want(host, 421, "").Header["Strict-Transport-Security"]; got != nil {
				t.Errorf("plain, %s: HSTS %q", host, got)
			}
			h1.want(host, 421, "")
		}
	}
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

// plainConn is a connection without TLS that stays open.
type plainConn struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func keptPlain(t *testing.T, base string) *plainConn {
	t.Helper()
	c, err := net.Dial("tcp", addrOf(t, base))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return &plainConn{c, t, bufio.NewReader(c)}
}

// want fails the test unless a request on the connection is answered so.
func (c *plainConn) want(host string, status int, body string) *http.Response {
	c.t.Helper()
	fmt.Fprintf(c, "GET /f HTTP/1.1\r\nHost: %s\r\n\r\n", host)
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	got, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status || !strings.Contains(string(got), body) {
		c.t.Fatalf("%s: %v %q %v, want %d with %q", host, res, got, err, status, body)
	}
	return res
}

// A reload changes the protocols of an address, of its new connections, and one that fails does not.
func TestReloadProtocols(t *testing.T) {
	t.Parallel()
	needSignals(t)
	ca, dir := newCA(t), t.TempDir()
	ca.server(dir, "a", "a.example")
	site := fmt.Sprintf("[[site]]\nhosts = 'a.example'\nroot = 'a'\ntls_cert = '%[1]s/a.pem'\ntls_key = '%[1]s/a-key.pem'\n",
		filepath.ToSlash(dir))
	const listen, plain = "[[listen]]\naddress = '127.0.0.1:0'\n", "[[listen]]\naddress = '127.0.0.1:0'\ntls = false\n"
	const only, both = "protocols = ['h1']\n", "protocols = ['h1', 'h2']\n"
	file := filepath.Join(folder(t, map[string]string{"a/f": "of a"}), "chert.toml")
	write(t, file, listen+site)
	p := start(t, "--config", file)
	want := func(what, protocol string) {
		t.Helper()
		c := mustDialTLS(t, p.urls[0], &tls.Config{RootCAs: ca.pool, ServerName: "a.example", NextProtos: []string{"h2", "http/1.1"}})
		defer c.Close()
		if got := c.ConnectionState().NegotiatedProtocol; got != protocol {
			t.Errorf("%s: ALPN selected %q, want %q", what, got, protocol)
		}
	}
	want("at first", "h2")
	write(t, file, listen+only+site)
	p.reload()
	want("h1", "http/1.1")
	write(t, file, listen+both+site+"[[site]]\nhosts = 'b.example'\nroot = 'none'\n")
	p.refuse()
	want("refused", "http/1.1")
	write(t, file, plain+listen+only+site) // the address of TLS is another one of the list now
	p.reload()
	want("beside plain HTTP", "http/1.1")
	write(t, file, listen+both+plain+site)
	p.reload()
	want("both", "h2")
}
