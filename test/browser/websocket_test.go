package browser

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/websocket"
	"github.com/chromedp/chromedp"
)

// WebSockets of a page: over HTTP/2 if the server says that it may, over HTTP/1 otherwise.
func TestWebSockets(t *testing.T) {
	t.Parallel()
	for _, extended := range []bool{false, true} {
		t.Run(fmt.Sprint(extended), func(t *testing.T) {
			t.Parallel()
			testWebSockets(t, extended)
		})
	}
}

func testWebSockets(t *testing.T, extended bool) {
	cert, _ := servertest.Certificate(t)
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	echo, err := websocket.New(&websocket.Options{
		OnOpen:       func(c *websocket.Conn, r *http.Request) { c.Send(websocket.TypeText, []byte(r.Proto)) },
		OnMessage:    func(c *websocket.Conn, typ websocket.Type, p []byte) { c.Send(typ, p) },
		Subprotocols: []string{"chat"},
		Compression:  &websocket.Compression{},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/echo", echo)
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!DOCTYPE html><link rel=icon href=data:,><title>", r.Proto, "</title>")
	})
	s := &chert.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, ExtendedConnect: extended}
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		s.Close()
		if err := servertest.Await(t, served, "ServeTLS"); err != http.ErrServerClosed {
			t.Errorf("ServeTLS returned %v", err)
		}
	})
	key := sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
	tab := openTab(t, "https://"+l.Addr().String(),
		chromedp.Flag("ignore-certificate-errors-spki-list", base64.StdEncoding.EncodeToString(key[:])))
	tab.visit(t, tab.origin+"/")
	if got := eval[string](t, tab, "document.title"); got != "HTTP/2.0" {
		t.Fatalf("the page came by %s", got)
	}
	// Several at a time, of which each gets its own messages, small and large.
	got := eval[string](t, tab, `Promise.all([1, 2, 3].map(n => new Promise((done, fail) => {
		const ws = new WebSocket(location.origin.replace('https', 'wss') + '/echo', ['other', 'chat']);
		const large = 'large '.repeat(50000) + n;
		let proto, count = 0;
		ws.onerror = () => done('error');
		ws.onclose = e => done([proto, ws.protocol, count, e.code, e.wasClean].join(' '));
		ws.onmessage = e => {
			if (!proto) {
				proto = e.data;
				for (let i = 0; i < 100; i++) ws.send(n + ' ' + i);
				ws.send(large);
			} else if (e.data === large) {
				ws.close(4000, 'bye');
			} else if (e.data === n + ' ' + count) {
				count++;
			} else {
				done('got ' + e.data.slice(0, 100));
			}
		};
	}))).then(all => all.join(', '))`)
	proto := "HTTP/1.1"
	if extended {
		proto = "HTTP/2.0"
	}
	one := proto + " chat 100 4000 true"
	if want := one + ", " + one + ", " + one; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
