package websocket

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/websocket"
)

func TestHandshake(t *testing.T) {
	eachHTTP1(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		ts := start(t, fresh(handler(t, &websocket.Options{
			OnMessage: echo, Origins: []string{"https://app.example.org", "https://*.example.net"},
		})))
		good := upgrade()
		with := func(field string) string { return upgrade(field) }
		without := func(line string) string { return strings.Replace(good, line+"\r\n", "", 1) }
		for _, tt := range []struct {
			name, request string
			status        int
			field, value  string // of the response
		}{
			{"plain request", servertest.RawHead("GET / HTTP/1.1", "Host: example.com"), 426, "Upgrade", "websocket"},
			{"POST", strings.Replace(good, "GET", "POST", 1), 405, "Allow", "GET"},
			{"HTTP/1.0", strings.Replace(good, "HTTP/1.1", "HTTP/1.0", 1), 426, "Upgrade", "websocket"},
			{"no Connection", without("Connection: keep-alive, Upgrade"), 426, "Upgrade", "websocket"},
			{"other protocol", strings.Replace(good, "WebSocket", "h2c", 1), 426, "Upgrade", "websocket"},
			{"protocol with letters beyond ASCII", strings.Replace(good, "WebSocket", "Web\u017foc\u212aet", 1), 426, "Upgrade", "websocket"},
			{"other version", strings.Replace(good, "Version: 13", "Version: 8", 1), 426, "Sec-Websocket-Version", "13"},
			{"no version", without("Sec-WebSocket-Version: 13"), 426, "Sec-Websocket-Version", "13"},
			{"no key", without("Sec-WebSocket-Key: " + key), 400, "", ""},
			{"short key", strings.Replace(good, key, "c2hvcnQ=", 1), 400, "", ""},
			{"key that is not base64", strings.Replace(good, key, "!", 1), 400, "", ""},
			{"two keys", with("Sec-WebSocket-Key: " + key), 400, "", ""},
			{"body", with("Content-Length: 5") + "12345", 400, "", ""},
			{"chunked body", with("Transfer-Encoding: chunked") + "0\r\n\r\n", 400, "", ""},
			{"foreign origin", with("Origin: https://evil.example"), 403, "", ""},
			{"null origin", with("Origin: null"), 403, "", ""},
			{"empty origin", with("Origin:"), 403, "", ""},
			{"suffix of an origin", with("Origin: https://evilexample.net"), 403, "", ""},
			{"scheme of an origin", with("Origin: http://app.example.org"), 403, "", ""},
			{"prefix of the host", with("Origin: http://example.com.evil.example"), 403, "", ""},
			{"user in the origin", with("Origin: http://example.com@evil.example"), 403, "", ""},
			{"two origins", upgrade("Origin: http://example.com", "Origin: https://evil.example"), 403, "", ""},
			{"same origin", with("Origin: https://EXAMPLE.com"), 101, "Upgrade", "websocket"},
			{"listed origin", with("Origin: https://app.example.org"), 101, "Connection", "Upgrade"},
			{"subdomain", with("Origin: https://a.b.example.net"), 101, "Sec-Websocket-Accept", accept},
			{"no origin", good, 101, "Sec-Websocket-Extensions", ""},
			{"extension that is not enabled", with("Sec-WebSocket-Extensions: permessage-deflate"), 101, "Sec-Websocket-Extensions", ""},
		} {
			c := ts.Dial()
			c.Send(tt.request)
			res, err := http.ReadResponse(c.R, &http.Request{Method: "GET"})
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			if res.StatusCode != tt.status || tt.field != "" && res.Header.Get(tt.field) != tt.value {
				t.Errorf("%s: %d %v", tt.name, res.StatusCode, res.Header)
			}
			c.Close()
		}
	})
}

// TestHandshakeHTTP2: what is no extended CONNECT is refused without 426, which would need Upgrade.
func TestHandshakeHTTP2(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		if !fresh(nil).ExtendedConnect {
			t.Skip("for HTTP/2")
		}
		ts := engines.Start(t, fresh(handler(t, &websocket.Options{OnMessage: echo})))
		for _, tt := range []struct{ method, status string }{{"GET", "400"}, {"POST", "405"}} {
			tn, err := dialTunnel(ts.ListenAddr, ":method", tt.method, ":scheme", "http", ":authority", "example.com", ":path", "/",
				"sec-websocket-version", "13")
			if err != nil {
				t.Fatal(err)
			}
			if tn.status != tt.status {
				t.Errorf("%s: %s %v", tt.method, tn.status, tn.fields)
			}
			tn.Close()
		}
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want string // in the error; "" for none
		o    websocket.Options
	}{
		{"", websocket.Options{}},
		{"", websocket.Options{MaxMessage: -1, MaxFragments: -1, MaxUnsent: -1, PingInterval: -1, IdleTimeout: -1, Origins: []string{"*"}}},
		{"Origins", websocket.Options{Origins: []string{"example.com"}}},
		{"Origins", websocket.Options{Origins: []string{"https://example.com/path"}}},
		{"Origins", websocket.Options{Origins: []string{"https://a*.example.com"}}},
		{"Subprotocols", websocket.Options{Subprotocols: []string{"a b"}}},
		{"Slow", websocket.Options{Slow: 7}},
		{"Compression", websocket.Options{Compression: &websocket.Compression{Window: 16}}},
		{"Compression", websocket.Options{Compression: &websocket.Compression{ClientWindow: -1}}},
		{"", websocket.Options{Compression: &websocket.Compression{Window: 8, ClientWindow: 15, Threshold: -1}}},
	} {
		_, err := websocket.New(&tt.o)
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), "websocket: "+tt.want) {
			t.Errorf("%+v: %v", tt.o, err)
		}
	}
	if _, err := websocket.New(nil); err != nil {
		t.Error(err)
	}
}

// TestWrapped: middleware may wrap the http.ResponseWriter.
func TestWrapped(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		h := handler(t, &websocket.Options{OnMessage: echo})
		ts := start(t, fresh(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Request-Id", "7")
			h.ServeHTTP(wrapper{w}, r)
		})))
		c := open(ts)
		if got := c.header.Get("X-Request-Id"); got != "7" {
			t.Errorf("%q", got)
		}
		c.Send(text("a"))
		c.wants("a")
	})
}

// TestKeptBack: what wraps the http.ResponseWriter may keep the status back, until the handler has
// returned.
func TestKeptBack(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		h := handler(t, &websocket.Options{OnMessage: echo})
		ts := start(t, fresh(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			k := &keeper{wrapper: wrapper{w}}
			h.ServeHTTP(k, r)
			k.WriteHeaderNow()
		})))
		c := open(ts)
		c.Send(text("a"))
		c.wants("a")
		if got := ts.Log.String(); got != "" {
			t.Error(got)
		}
	})
}

// keeper is like gin's.
type keeper struct {
	wrapper
	status int
	begun  bool
}

func (k *keeper) WriteHeader(status int) { k.status = status }

func (k *keeper) WriteHeaderNow() {
	if !k.begun {
		k.begun = true
		k.w.WriteHeader(k.status)
	}
}

// TestNoHijack: below an http.ResponseWriter that cannot be hijacked a handshake is refused.
func TestNoHijack(t *testing.T) {
	eachHTTP1(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		for name, o := range map[string]*websocket.Options{
			"OnMessage": {OnMessage: echo}, "Serve": {Serve: serveEcho},
		} {
			h := handler(t, o)
			for around, h := range map[string]http.Handler{"nothing": h, "Recover": middleware.Recover(nil)(h)} {
				ts := start(t, fresh(http.TimeoutHandler(h, time.Hour, "")))
				c := ts.Dial()
				for range 2 { // what follows the refusal is a request
					c.Send(upgrade())
					res, err := http.ReadResponse(c.R, nil)
					if err != nil {
						t.Fatalf("%s in %s: %v", name, around, err)
					}
					b, err := io.ReadAll(res.Body)
					if res.StatusCode != 500 || res.Header.Get("Upgrade") != "" || err != nil {
						t.Errorf("%s in %s: %d %v %q %v", name, around, res.StatusCode, res.Header, b, err)
					}
				}
				c.Close()
			}
		}
	})
}

// TestKeepAlivesOff: the end of keep-alives does not concern upgrades.
func TestKeepAlivesOff(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		s := fresh(handler(t, &websocket.Options{OnMessage: echo}))
		s.SetKeepAlivesEnabled(false)
		ts := start(t, s)
		c := open(ts)
		if got := c.header["Connection"]; len(got) != 1 || got[0] != "Upgrade" {
			t.Error(got)
		}
		for range 3 {
			c.Send(text("a"))
			c.wants("a")
		}
	})
}

type wrapper struct{ w http.ResponseWriter }

func (w wrapper) Header() http.Header         { return w.w.Header() }
func (w wrapper) Write(p []byte) (int, error) { return w.w.Write(p) }
func (w wrapper) WriteHeader(status int)      { w.w.WriteHeader(status) }
func (w wrapper) Unwrap() http.ResponseWriter { return w.w }
