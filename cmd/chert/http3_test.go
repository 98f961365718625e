package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quic-go/quic-go/http3"

	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/http3client"
)

// newHTTP3 is newClient over HTTP/3.
func newHTTP3(t *testing.T, cfg *tls.Config) (*http.Client, *http3.Transport) {
	t.Helper()
	tr := &http3.Transport{TLSClientConfig: cfg}
	t.Cleanup(func() { tr.Close() })
	return &http.Client{Transport: http3client.Transport{Transport: tr}, Timeout: patience}, tr
}

// altSvc returns that field of a response over TCP.
func altSvc(t *testing.T, cfg *tls.Config, base string, two bool) string {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: cfg.Clone(), Protocols: new(http.Protocols)}
	defer tr.CloseIdleConnections()
	tr.Protocols.SetHTTP1(!two)
	tr.Protocols.SetHTTP2(two)
	r := send(t, &http.Client{Transport: tr, Timeout: patience}, base, "f", "", nil)
	return strings.Join(r.header.Values("Alt-Svc"), " + ")
}

// With --http3 clients that speak HTTP/3 get it, and responses over HTTP/1 and HTTP/2 announce it.
func TestHTTP3(t *testing.T) {
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	cert, key := ca.server(dir, "cert", "127.0.0.1")
	for _, on := range []bool{true, false} {
		p := start(t, folder(t, map[string]string{"f": "body"}), "--listen", freeport.Both(t), "--tls-cert", cert,
			"--tls-key", key, fmt.Sprintf("--http3=%v", on))
		base := p.urls[0]
		port := base[strings.LastIndex(base, ":"):]
		want := fmt.Sprintf("h3=%q; ma=86400", strings.Trim(port, "/"))
		cfg := &tls.Config{RootCAs: ca.pool}
		if !on {
			want = ""
		} else if line := p.line(); line != "chert: HTTP/3 on the UDP port "+strings.Trim(port, ":/")+"\n" {
			t.Errorf("line %q", line)
		}
		for _, two := range []bool{false, true} {
			if got := altSvc(t, cfg, base, two); got != want {
				t.Errorf("on: %v, over HTTP/2: %v: Alt-Svc %q, want %q", on, two, got, want)
			}
		}
		if on {
			c, _ := newHTTP3(t, cfg)
			res, err := c.Get(base + "f")
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if err != nil || res.Proto != "HTTP/3.0" || string(body) != "body" || res.Header.Get("Alt-Svc") != "" {
				t.Errorf("%s %q %v, %v", res.Proto, body, res.Header, err)
			}
		}
		p.cmd.Process.Kill()
		p.wait()
	}
}

// A reload changes sites and certificates for connections of HTTP/3 too, and switches it off and on.
func TestHTTP3Reload(t *testing.T) {
	needSignals(t)
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	ca.server(dir, "one", "127.0.0.1")
	ca.server(dir, "two", "127.0.0.1")
	write(t, filepath.Join(dir, "a", "f"), "body a")
	write(t, filepath.Join(dir, "b", "f"), "body b")
	file := filepath.Join(dir, "chert.toml")
	config := func(on bool, cert, root string) {
		write(t, file, fmt.Sprintf("http3 = %v\n[[site]]\nhosts = ['*']\nroot = '%s'\ntls_cert = '%s.pem'\n"+
			"tls_key = '%s-key.pem'\n", on, root, cert, cert))
	}
	config(true, "one", "a")
	p := start(t, "--config", file, "--listen", freeport.Both(t))
	p.line()
	kept, _ := newHTTP3(t, &tls.Config{RootCAs: ca.pool})
	serial := func(c *http.Client, body string) string {
		t.Helper()
		res, err := c.Get(p.urls[0] + "f")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err != nil || string(b) != body {
			t.Fatalf("%q, %v", b, err)
		}
		return res.TLS.PeerCertificates[0].SerialNumber.String()
	}
	one := serialIn(t, filepath.Join(dir, "one.pem"))
	if got := serial(kept, "body a"); got != one {
		t.Errorf("the certificate %s", got)
	}
	config(true, "two", "b")
	p.reload()
	p.line()
	if got := serial(kept, "body b"); got != one {
		t.Error("the connection did not last")
	}
	fresh, _ := newHTTP3(t, &tls.Config{RootCAs: ca.pool})
	if got := serial(fresh, "body b"); got == one {
		t.Error("the certificate is not the new one")
	}
	cfg := &tls.Config{RootCAs: ca.pool}
	for _, wait := range []bool{true, false} {
		config(false, "two", "b")
		p.reload()
		if got := altSvc(t, cfg, p.urls[0], true); got != "clear" {
			t.Errorf("Alt-Svc is %q", got)
		}
		until(t, func() bool { // when the connections have ended the port is free; otherwise they end at once
			if !wait {
				return true
			}
			l, err := net.ListenPacket("udp", addrOf(t, p.urls[0]))
			if err == nil {
				l.Close()
			}
			return err == nil
		})
		config(true, "two", "b")
		p.reload()
		p.line()
		if got := altSvc(t, cfg, p.urls[0], false); !strings.HasPrefix(got, "h3=") {
			t.Errorf("Alt-Svc is %q", got)
		}
		fresh, _ = newHTTP3(t, cfg)
		serial(fresh, "body b")
	}
	p.cmd.Process.Kill()
	p.wait()
}

// The UDP port of a file may be taken, which a reload survives.
func TestHTTP3PortTaken(t *testing.T) {
	needSignals(t)
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	ca.server(dir, "cert", "127.0.0.1")
	write(t, filepath.Join(dir, "f"), "body")
	file := filepath.Join(dir, "chert.toml")
	const text = "[[site]]\nhosts = ['*']\nroot = 'www'\ntls_cert = 'cert.pem'\ntls_key = 'cert-key.pem'\n"
	write(t, filepath.Join(dir, "www", "f"), "body")
	write(t, file, text)
	p := start(t, "--config", file, "--listen", freeport.Both(t))
	taken, err := net.ListenPacket("udp", addrOf(t, p.urls[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	write(t, file, "http3 = true\n"+text)
	if said := p.refuse(); !strings.Contains(said, "for HTTP/3: another program has it") {
		t.Errorf("it said %q", said)
	}
	taken.Close()
	p.reload()
	p.line()
	p.cmd.Process.Kill()
	p.wait()
}

// The key is that of the cluster, or kept with the certificates.
func TestHTTP3Secret(t *testing.T) {
	t.Parallel()
	up := &setup{tls: &tlsSites{}}
	if s, err := http3Secret(up); s != nil || err != nil {
		t.Errorf("without a folder: %v, %v", s, err)
	}
	up.tls.acme.Storage = filepath.Join(t.TempDir(), "state")
	first, err := http3Secret(up)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(up.tls.acme.Storage, "http3.key")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info, err)
	}
	if again, err := http3Secret(up); err != nil || *again != *first {
		t.Errorf("another secret, %v", err)
	}
	write(t, path, "short")
	if _, err := http3Secret(up); err == nil || !strings.Contains(err.Error(), "has 5 bytes") {
		t.Errorf("got %v", err)
	}
	up.cluster.Tickets, up.cluster.Secret = true, "0123456789abcdef0123456789abcdef"
	if s, err := http3Secret(up); err != nil || *s != up.cluster.Secret.Key("http3") {
		t.Errorf("of a cluster: %v, %v", s, err)
	}
}

// chert check has the records of the DNS.
func TestHTTP3Records(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "www", "f"), "body")
	file := filepath.Join(dir, "chert.toml")
	const sites = "[[site]]\nhosts = ['example.com', '*.example.org', '192.0.2.1', '*']\nroot = 'www'\ntls_self = true\n"
	for _, tt := range []struct{ text, want string }{
		{"listen = ':443'\n", ""},
		{"listen = ':443'\nhttp3 = true\n", `example.com. HTTPS 1 . alpn="h3,h2"` + "\n" + `*.example.org. HTTPS 1 . alpn="h3,h2"` + "\n"},
		{"http3 = true\n", `example.com. HTTPS 1 . alpn="h3,h2"` + "\n" + `*.example.org. HTTPS 1 . alpn="h3,h2"` + "\n"},
		{"[[listen]]\naddress = ':8443'\nprotocols = ['h1', 'h3']\n", `_8443._https.example.com. HTTPS 1 . alpn="h3"` + "\n"},
		{"http3 = true\n[[listen]]\naddress = ':443'\nprotocols = ['h1', 'h2']\n", ""},
	} {
		write(t, file, tt.text+sites)
		code, stdout, stderr := inProcess(t, "check", file)
		_, records, _ := strings.Cut(stdout, "browsers begin by HTTP/3:\n")
		if code != exitOK || records != tt.want {
			t.Errorf("%s: %d %q, %s", tt.text, code, stdout, stderr)
		}
	}
}
