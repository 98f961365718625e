package h2_test

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

// connect is an extended CONNECT.
var connect = []string{":method: CONNECT", ":protocol: websocket", ":scheme: http", ":authority: example.com", ":path: /", "sec-websocket-version: 13"}

// message is a client's frame.
func message(op wsframe.Opcode, payload string) string {
	h := wsframe.Header{Fin: true, Op: op, Masked: true, Key: 0x01020304, Length: int64(len(payload))}
	b := h.Append(nil)
	n := len(b)
	b = append(b, payload...)
	wsframe.Mask(b[n:], h.Key)
	return string(b)
}

func text(s string) string { return message(wsframe.Text, s) }

// echoes is what the server answers to texts.
func echoes(all ...string) string {
	var b []byte
	for _, s := range all {
		b = wsframe.AppendFrame(b, wsframe.Text, false, []byte(s))
	}
	return string(b)
}

// tunnels starts a server of WebSockets.
func tunnels(t *testing.T, kind string, o *websocket.Options) *running {
	t.Helper()
	if o.OnMessage == nil {
		o.OnMessage = func(c *websocket.Conn, typ websocket.Type, p []byte) { c.Send(typ, p) }
	}
	h, err := websocket.New(o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.HandleFunc("/hello", hello)
	return serve(t, kind, &chert.Server{Handler: mux, ExtendedConnect: true})
}

// data writes a DATA frame.
func (c *raw) data(id uint32, s string) { c.fr.WriteData(id, false, []byte(s)) }

// wantData reads DATA of these streams until each has got what is wanted.
func (c *raw) wantData(want map[uint32]string) {
	c.t.Helper()
	got := make(map[uint32]string)
	for missing := true; missing; {
		switch f := c.next().(type) {
		case nil:
			c.t.Fatalf("the connection has ended; got %v", got)
		case *http2.DataFrame:
			got[f.StreamID] += string(f.Data())
		case *http2.HeadersFrame:
			if _, err := c.dec.DecodeFull(f.HeaderBlockFragment()); err != nil {
				c.t.Fatal(err)
			}
		case *http2.RSTStreamFrame:
			c.t.Fatalf("stream %d is reset: %v; got %v", f.StreamID, f.ErrCode, got)
		}
		missing = false
		for id, s := range want {
			if len(got[id]) > len(s) || !strings.HasPrefix(s, got[id]) {
				c.t.Fatalf("stream %d: got %q, want %q", id, got[id], s)
			}
			missing = missing || got[id] != s
		}
	}
}

// TestTunnelPromise: the setting is sent only if the server is told to, and without it
// extended CONNECT is malformed.
func TestTunnelPromise(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		for _, on := range []bool{false, true} {
			s := serve(t, kind, &chert.Server{Handler: hf(hello), ExtendedConnect: on})
			c := s.raw()
			f, ok := c.next().(*http2.SettingsFrame)
			if !ok {
				t.Fatal("no SETTINGS")
			}
			if v, _ := f.Value(http2.SettingEnableConnectProtocol); (v == 1) != on {
				t.Errorf("%v: SETTINGS_ENABLE_CONNECT_PROTOCOL is %d", on, v)
			}
			c.headers(1, false, connect...)
			c.send()
			want := map[bool]string{false: "400", true: "200"}[on] // hello answers any method
			if a := c.read(1); a.status() != want {
				t.Errorf("%v: %+v", on, a)
			}
		}
	})
}

// TestTunnelRefused: what is no correct opening of a WebSocket.
func TestTunnelRefused(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		c := tunnels(t, kind, &websocket.Options{}).raw()
		id := uint32(1)
		for _, tt := range []struct {
			what   string
			fields []string
			status string
		}{
			{"another protocol", with(connect[:1], append([]string{":protocol: connect-udp"}, connect[2:]...)...), "501"},
			{"no version", connect[:5], "400"},
			{"another version", with(connect[:5], "sec-websocket-version: 8"), "400"},
			{"a foreign origin", with(connect, "origin: https://other.example"), "403"},
			{"no path", with(connect[:4], connect[5]), "400"},
			{"no scheme", with(connect[:2], connect[3:]...), "400"},
			{"twice", with(connect[:2], connect[1:]...), "400"},
			{"an empty protocol", with([]string{":method: CONNECT", ":protocol: "}, connect[2:]...), "400"},
			{"GET", with([]string{":method: GET"}, connect[1:]...), "400"},
			{"a length", with(connect, "content-length: 5"), "400"},
			{"GET to the same", get, "400"},
		} {
			c.headers(id, false, tt.fields...)
			c.send()
			if a := c.read(id); a.status() != tt.status {
				t.Errorf("%s: %+v", tt.what, a)
			}
			id += 2
		}
		c.headers(id, true, connect...)
		c.send()
		if a := c.read(id); a.status() != "400" {
			t.Errorf("with END_STREAM: %+v", a)
		}
		if a := c.get(id+2, "/hello"); a.body != "hello" {
			t.Errorf("afterwards: %+v", a)
		}
	})
}

// TestTunnels: messages of many streams of a connection, between requests, in pieces of
// any size.
func TestTunnels(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		c := tunnels(t, kind, &websocket.Options{}).raw()
		long := strings.Repeat("long ", 2000)
		want := make(map[uint32]string)
		for id := uint32(1); id < 20; id += 2 {
			c.headers(id, false, connect...)
			c.data(id, text("early")) // before the answer
			want[id] = echoes("early", "one", long, "two", "three")
		}
		c.send()
		all := text("one") + text(long) + text("two") + text("three")
		for len(all) > 0 {
			n := min(len(all), 1500)
			for id := uint32(1); id < 20; id += 2 {
				c.fr.WriteDataPadded(id, false, []byte(all[:n]), make([]byte, 10))
			}
			c.send()
			all = all[n:]
		}
		c.fr.WriteWindowUpdate(0, 1<<20)
		c.send()
		c.wantData(want)
		if a := c.get(21, "/hello"); a.body != "hello" {
			t.Errorf("a request: %+v", a)
		}
		// Both ways of an end.
		c.data(1, message(wsframe.Close, "\x03\xe8"))
		c.send()
		if a := c.read(1); a.body != string(wsframe.AppendClose(nil, 1000, "")) || !a.end {
			t.Errorf("after Close: %+v", a)
		}
		c.fr.WriteData(3, true, []byte(text("last")))
		c.send()
		if a := c.read(3); a.body != echoes("last") || !a.end {
			t.Errorf("after END_STREAM: %+v", a)
		}
		// A field section is malformed there.
		c.headers(5, true, "a: b")
		c.send()
		if a := c.read(5); a.outcome() != "RST PROTOCOL_ERROR" {
			t.Errorf("HEADERS: %+v", a)
		}
		c.data(7, text("and on"))
		c.send()
		c.wantData(map[uint32]string{7: echoes("and on")})
	})
}

// TestTunnelBlocks: a stream whose code waits does not hold up others, and what the client
// resets meanwhile ends when the code has.
func TestTunnelBlocks(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		entered, release, closed := make(chan bool, 10), make(chan bool), make(chan websocket.Code, 10)
		opened := make(chan bool, 10)
		c := tunnels(t, kind, &websocket.Options{
			OnOpen: func(*websocket.Conn, *http.Request) { opened <- true },
			OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
				if string(p) == "wait" {
					entered <- true
					<-release
				}
				c.Send(typ, p)
			},
			OnClose: func(_ *websocket.Conn, code websocket.Code, _ string) { closed <- code },
		}).raw()
		for id := uint32(1); id < 8; id += 2 {
			c.headers(id, false, connect...)
		}
		c.send()
		for range 4 {
			// A stream that is reset before is no WebSocket yet.
			servertest.Await(t, opened, "OnOpen")
		}
		c.data(1, text("wait")+text("after"))
		c.data(3, text("wait")+text("never"))
		c.send()
		servertest.Await(t, entered, "the first")
		servertest.Await(t, entered, "the second")
		c.data(5, text("others"))
		c.fr.WriteRSTStream(3, http2.ErrCodeCancel)
		c.send()
		c.wantData(map[uint32]string{5: echoes("others")})
		c.fr.WriteRSTStream(7, http2.ErrCodeCancel)
		c.send()
		if code := servertest.Await(t, closed, "OnClose of a silent one"); code != websocket.CodeAbnormal {
			t.Error(code)
		}
		if len(closed) > 0 {
			t.Error("OnClose while OnMessage runs")
		}
		close(release)
		c.wantData(map[uint32]string{1: echoes("wait", "after")})
		servertest.Await(t, closed, "OnClose of the other one")
		// The end of the connection while code runs.
		c.Close()
		servertest.Await(t, closed, "OnClose")
		servertest.Await(t, closed, "OnClose")
	})
}

// TestTunnelEnds: OnClose is called once for each stream, whatever its code is doing when
// the connection ends.
func TestTunnelEnds(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		release, entered, closed := make(chan bool), make(chan bool, 10), make(chan bool, 10)
		opened := make(chan bool, 10)
		wait := func() {
			entered <- true
			<-release
		}
		c := tunnels(t, kind, &websocket.Options{
			OnOpen: func(_ *websocket.Conn, r *http.Request) {
				if r.URL.Path == "/wait" {
					wait()
				} else {
					opened <- true
				}
			},
			OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) { wait() },
			OnClose:   func(*websocket.Conn, websocket.Code, string) { closed <- true },
		}).raw()
		c.headers(1, false, connect...)
		c.headers(3, false, connect...)
		c.headers(5, false, with(connect[:4], ":path: /wait", connect[5])...)
		c.data(3, text("a"))
		c.send()
		servertest.Await(t, entered, "OnOpen or OnMessage")
		servertest.Await(t, entered, "OnOpen or OnMessage")
		// A connection that ends before is no WebSocket yet.
		servertest.Await(t, opened, "OnOpen")
		servertest.Await(t, opened, "OnOpen")
		c.Close()
		servertest.Await(t, closed, "OnClose of the silent one")
		close(release)
		servertest.Await(t, closed, "OnClose")
		servertest.Await(t, closed, "OnClose")
		runtime.Gosched()
		if len(closed) > 0 {
			t.Error("OnClose twice")
		}
	})
}

// TestTunnelShutdown: the server's end is a Close frame to each.
func TestTunnelShutdown(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := tunnels(t, kind, &websocket.Options{})
		c := s.raw()
		c.headers(1, false, connect...)
		c.headers(3, false, connect...)
		c.data(1, text("a"))
		c.data(3, text("a"))
		c.send()
		c.wantData(map[uint32]string{1: echoes("a"), 3: echoes("a")})
		done := make(chan error, 1)
		ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
		defer cancel()
		go func() { done <- s.Shutdown(ctx) }()
		away := string(wsframe.AppendClose(nil, wsframe.CodeGoingAway, ""))
		c.wantData(map[uint32]string{1: away, 3: away})
		c.fr.WriteData(1, false, []byte(message(wsframe.Close, "\x03\xe9")))
		c.fr.WriteData(3, true, []byte(message(wsframe.Close, "\x03\xe9")))
		c.send()
		if a := c.read(3); !a.end || a.body != "" {
			t.Errorf("%+v", a)
		}
		c.Close()
		if err := servertest.Await(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}

// TestTunnelPanics: the handler's and a message's.
func TestTunnelPanics(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		closed := make(chan websocket.Code, 10)
		c := tunnels(t, kind, &websocket.Options{
			OnOpen: func(_ *websocket.Conn, r *http.Request) {
				switch r.URL.Path {
				case "/panic":
					panic(http.ErrAbortHandler)
				case "/exit":
					runtime.Goexit()
				}
			},
			OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
				if string(p) == "exit" {
					runtime.Goexit()
				}
				panic(http.ErrAbortHandler)
			},
			OnClose: func(_ *websocket.Conn, code websocket.Code, _ string) { closed <- code },
		}).raw()
		for i, p := range []string{"/panic", "/exit", "/", "/"} {
			id := uint32(2*i + 1)
			c.headers(id, false, with(connect[:4], ":path: "+p, connect[5])...)
			c.data(id, text([]string{"", "", "panic", "exit"}[i]))
			c.send()
			if a := c.read(id); !a.end && a.reset == "" {
				t.Errorf("%s: %+v", p, a)
			}
			servertest.Await(t, closed, "OnClose")
		}
		if a := c.get(9, "/hello"); a.body != "hello" {
			t.Errorf("afterwards: %+v", a)
		}
	})
}

// TestTunnelGoroutines: silent ones have none, on loops.
func TestTunnelGoroutines(t *testing.T) {
	if kinds[len(kinds)-1] != "tls" {
		t.Skip("no loops here")
	}
	s := tunnels(t, "loops", &websocket.Options{})
	c := s.raw()
	c.headers(1, false, connect...)
	c.data(1, text("a"))
	c.send()
	c.wantData(map[uint32]string{1: echoes("a")})
	before := runtime.NumGoroutine()
	for i := range uint32(200) {
		id := 2*i + 3
		c.headers(id, false, connect...)
		c.data(id, text("a"))
		c.send()
		c.wantData(map[uint32]string{id: echoes("a")})
	}
	servertest.Eventually(t, "no goroutine for each stream", func() bool { return runtime.NumGoroutine() < before+50 })
}

// TestTunnelWriteEnds: code that waits until the client reads goes on when that resets the
// stream, or ends the connection.
func TestTunnelWriteEnds(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		for _, end := range []string{"stream", "connection"} {
			failed, waits := make(chan error, 1), make(chan bool, 1)
			s := tunnels(t, kind, &websocket.Options{Slow: websocket.SlowDrop, OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
				big := make([]byte, 16<<10)
				for c.Send(websocket.TypeBinary, big) == nil {
				}
				waits <- true
				failed <- c.Write(context.Background(), websocket.TypeBinary, big)
			}})
			c := s.raw()
			c.headers(1, false, connect...)
			c.data(1, text("a"))
			c.send()
			servertest.Await(t, waits, "full")
			if end == "stream" {
				c.fr.WriteRSTStream(1, http2.ErrCodeCancel)
				c.send()
			} else {
				c.Close()
			}
			if err := servertest.Await(t, failed, "Write"); err == nil {
				t.Errorf("%s: Write has succeeded", end)
			}
		}
	})
}

// TestTunnelResetWhileCodeRuns: what a stream that the client has reset had to send does not
// have its turn before others' until its code returns.
func TestTunnelResetWhileCodeRuns(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		release, entered := make(chan bool), make(chan bool, 1)
		defer close(release)
		s := tunnels(t, kind, &websocket.Options{OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
			c.Send(websocket.TypeBinary, make([]byte, 1000))
			entered <- true
			<-release
		}})
		c := s.raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100})
		c.headers(1, false, connect...)
		c.data(1, text("a"))
		c.send()
		servertest.Await(t, entered, "OnMessage")
		c.fr.WriteRSTStream(1, http2.ErrCodeCancel)
		c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65535})
		c.send()
		for id := uint32(3); id < 30; id += 2 {
			if a := c.get(id, "/hello"); a.body != "hello" {
				t.Fatalf("another stream: %+v", a)
			}
		}
	})
}

// TestTunnelShutdownMeanwhile: the server's end is told to those whose handlers have not
// returned when it begins.
func TestTunnelShutdownMeanwhile(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		release, entered := make(chan bool), make(chan bool, 1)
		s := tunnels(t, kind, &websocket.Options{OnOpen: func(*websocket.Conn, *http.Request) {
			entered <- true
			<-release
		}})
		c := s.raw()
		c.headers(1, false, connect...)
		c.send()
		servertest.Await(t, entered, "OnOpen")
		done := make(chan error, 1)
		ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
		defer cancel()
		go func() { done <- s.Shutdown(ctx) }()
		for stopping := false; !stopping; {
			switch f := c.next().(type) {
			case nil:
				t.Fatal("the connection has ended")
			case *http2.GoAwayFrame:
				stopping = true
			case *http2.HeadersFrame:
				c.dec.DecodeFull(f.HeaderBlockFragment())
			}
		}
		close(release)
		c.wantData(map[uint32]string{1: string(wsframe.AppendClose(nil, wsframe.CodeGoingAway, ""))})
		c.Close()
		servertest.Await(t, done, "Shutdown")
	})
}
