package h2_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A handler on the loop that waits, or takes long, does not hold up the other streams
// of its connection.
func TestSlowOnTheLoop(t *testing.T) {
	t.Parallel()
	if !sys.HavePoller {
		t.Skip("no loops")
	}
	for _, how := range []string{"body", "window", "busy"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			var done atomic.Bool
			s := serve(t, "inline", &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/body":
					n, err := io.Copy(io.Discard, r.Body)
					fmt.Fprint(w, n, err)
				case "/window":
					w.Write(make([]byte, 100_000))
				case "/busy":
					for !done.Load() {
						runtime.Gosched() // computes
					}
				}
			})})
			c := s.raw()
			c.headers(1, how != "body", path(get, "/"+how)...)
			for i := range uint32(5) {
				c.headers(2*i+3, true, get...)
			}
			c.send()
			if a := c.read(11); a.outcome() != "200" {
				t.Fatalf("%+v", a)
			}
			done.Store(true)
			c.fr.WriteData(1, true, []byte("body"))
			if how != "body" {
				c.out.Reset()
			}
			c.fr.WriteWindowUpdate(0, 1<<20)
			c.fr.WriteWindowUpdate(1, 1<<20)
			c.headers(13, true, get...)
			c.send()
			a := c.read(1)
			if !a.end || how == "body" && a.body != "4 <nil>" {
				t.Errorf("%+v", a)
			}
			if a := c.get(15, "/"); a.outcome() != "200" {
				t.Errorf("%+v", a)
			}
		})
	}
}

// Shutdown sends two GOAWAYs, serves what comes between them and what has begun, and
// then closes.
func TestShutdown(t *testing.T) {
	t.Parallel()
	each(t, "oracle inline", func(t *testing.T, kind string) {
		began, release := make(chan bool), make(chan bool)
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				began <- true
				<-release
			}
			hello(w, r)
		})})
		idle, c := s.raw(), s.raw()
		if a := idle.get(1, "/"); a.outcome() != "200" {
			t.Fatalf("%+v", a)
		}
		c.headers(1, true, path(get, "/wait")...)
		c.send()
		<-began
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(context.Background()) }()
		var ping [8]byte
		for seen := false; !seen; {
			switch f := c.next().(type) {
			case *http2.GoAwayFrame:
				if f.LastStreamID != 1<<31-1 || f.ErrCode != 0 {
					t.Fatalf("%v", f)
				}
			case *http2.PingFrame:
				ping, seen = f.Data, true
			case nil:
				t.Fatal("closed")
			}
		}
		// It was on its way.
		if a := c.get(3, "/"); a.outcome() != "200" {
			t.Errorf("on its way: %+v", a)
		}
		c.fr.WritePing(true, ping)
		c.send()
		for {
			f, ok := c.next().(*http2.GoAwayFrame)
			if ok && f.LastStreamID == 3 && f.ErrCode == 0 {
				break
			}
			if f == nil && !ok {
				continue
			}
			t.Fatalf("%v", f)
		}
		c.headers(5, true, get...)
		c.send()
		if a := c.read(5); a.reset != "REFUSED_STREAM" {
			t.Errorf("after the second GOAWAY: %+v", a)
		}
		close(release)
		if a := c.read(1); a.outcome() != "200" || a.body != "hello" {
			t.Errorf("begun before: %+v", a)
		}
		if a := c.read(7); !a.closed {
			t.Errorf("not closed: %+v", a)
		}
		if a := idle.read(7); !a.closed || a.goaway != "NO_ERROR" {
			t.Errorf("idle: %+v", a)
		}
		if err := servertest.Await(t, ended, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}

// "Connection: close" of a handler ends the connection after what is under way.
func TestConnectionClose(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			hello(w, r)
		})})
		c := s.raw()
		if a := c.get(1, "/"); a.outcome() != "200" || a.field("connection") != "" {
			t.Errorf("%+v", a)
		}
		if a := c.read(3); !a.closed || a.goaway != "NO_ERROR" {
			t.Errorf("%+v", a)
		}
	})
}

// A handler that closes the body and goes on does not keep the connection's window,
// which other streams need. The stream's own is not given back.
func TestClosedBodyGivesTheWindowBack(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		closed, leave := make(chan struct{}), make(chan struct{})
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if n, err := r.Body.Read(make([]byte, 1)); n != 1 {
				t.Error(n, err)
			}
			r.Body.Close()
			close(closed)
			<-leave
		})})
		defer close(leave)
		c := s.raw()
		c.headers(1, false, post...)
		sent := 0
		data := func() {
			c.fr.WriteData(1, false, make([]byte, 16<<10))
			sent += 16 << 10
			c.send()
		}
		data()
		servertest.Await(t, closed, "the handler") // the rest of what it has is dropped
		for range 10 {
			data()
		}
		const unsent = 32 << 10 // what is little is given back later
		for back := 0; back < sent-unsent; {
			switch f := c.next().(type) {
			case nil:
				t.Fatal("closed")
			case *http2.WindowUpdateFrame:
				if f.StreamID != 0 {
					t.Fatalf("%d for stream %d", f.Increment, f.StreamID)
				}
				back += int(f.Increment)
			}
		}
	})
}

// Closing the body ends a Read that waits in another goroutine, as grpc-go's handler does
// it. The request goes on.
func TestCloseEndsRead(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).EnableFullDuplex()
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			first, read := make(chan struct{}), make(chan error, 1)
			go func() {
				r.Body.Read(make([]byte, 1))
				close(first)
				_, err := r.Body.Read(make([]byte, 1))
				read <- err
			}()
			<-first
			r.Body.Close()
			if err := <-read; err == nil || err == io.EOF {
				t.Error(err)
			}
			if err := r.Context().Err(); err != nil {
				t.Error(err)
			}
			io.WriteString(w, "done")
		})})
		c := s.raw()
		c.headers(1, false, post...)
		c.fr.WriteData(1, false, []byte("a"))
		c.send()
		if a := c.read(1); a.body != "done" || a.outcome() != "200" {
			t.Errorf("%+v", a)
		}
	})
}

func TestPingTimeout(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		counted := make(chan string, 10)
		s := serve(t, kind, &chert.Server{HTTP2: &http.HTTP2Config{SendPingTimeout: 50 * time.Millisecond, PingTimeout: 2 * time.Second,
			CountError: func(name string) { counted <- name }}, Handler: hf(hello)})
		c := s.raw()
		for range 3 {
			for {
				if f, ok := c.next().(*http2.PingFrame); ok && !f.IsAck() {
					c.fr.WritePing(true, f.Data)
					c.send()
					break
				}
			}
		}
		if a := c.read(1); !a.closed || a.pings == 0 {
			t.Errorf("%+v", a)
		}
		if name := servertest.Await(t, counted, "a count"); name != "conn_close_lost_ping" {
			t.Errorf("counted %s", name)
		}
		servertest.Eventually(t, "a line in the log", func() bool {
			return s.log.String() == "http2: timeout waiting for PING response from "+c.LocalAddr().String()+"\n"
		})
	})
}

// What ends a connection is logged as net/http does, and so is the error of a GOAWAY frame, but once for a connection.
func TestConnErrorsLogged(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(hello)})
		var want []string
		wrong := func() {
			c := s.raw()
			c.headers(2, true, get...)
			c.headers(4, true, get...)
			c.send()
			if a := c.read(1); a.outcome() != "GOAWAY PROTOCOL_ERROR" {
				t.Errorf("%+v", a)
			}
			from := c.LocalAddr().String()
			want = append(want, "http2: server connection error from "+from+": connection error: PROTOCOL_ERROR")
		}
		wrong()
		c := s.raw()
		c.fr.WriteGoAway(0, http2.ErrCodeNo, []byte("fine"))
		c.send()
		c.read(1)
		if kind != "oracle" { // it logs each of them, with all of the data
			c = s.raw()
			c.headers(1, true, get...)
			c.fr.WriteGoAway(0, http2.ErrCodeFlowControl, []byte(strings.Repeat("\n", 1000)))
			c.fr.WriteGoAway(0, http2.ErrCodeProtocol, nil)
			c.send()
			if a := c.read(1); a.outcome() != "200" {
				t.Errorf("%+v", a)
			}
			want = append(want, "http2: received GOAWAY from "+c.LocalAddr().String()+
				": FLOW_CONTROL_ERROR, debug data \""+strings.Repeat("\\n", 128)+"\"")
		}
		c = s.raw()
		c.out.WriteString("\xff\xff\xff\xff\x00\x00\x00\x00\x00") // a frame that is too large, which is not logged
		c.send()
		if a := c.read(1); a.outcome() != "GOAWAY FRAME_SIZE_ERROR" {
			t.Errorf("%+v", a)
		}
		wrong() // its line is the last one
		last := want[len(want)-1]
		servertest.Eventually(t, "the last line", func() bool { return strings.Contains(s.log.String(), last) })
		got := strings.Split(strings.TrimSpace(s.log.String()), "\n")
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("logged %q\nwant %q", got, want)
		}
	})
}

// A client that says nothing is not logged, as in net/http.
func TestSilentClientNotLogged(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"tls", "tlsgo"} {
		s := serve(t, kind, &chert.Server{Handler: hf(hello), ReadHeaderTimeout: 2 * time.Second})
		nc := tls.Client(must(net.Dial("tcp", s.addr)), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(servertest.Patience))
		b, err := io.ReadAll(nc)
		if log := s.log.String(); err != nil || len(b) == 0 || log != "" {
			t.Errorf("%s: %q, %v; logged %q", kind, b, err, log)
		}
	}
}

// TLS 1.2 with a cipher suite that RFC 9113 section 9.2.2 prohibits, which is refused
// and counted, unless HTTP2Config permits it.
func TestWeakCipher(t *testing.T) {
	t.Parallel()
	for _, permit := range []bool{false, true} {
		counted := make(chan string, 10)
		s := serve(t, "tls", &chert.Server{Handler: hf(hello), HTTP2: &http.HTTP2Config{
			PermitProhibitedCipherSuites: permit, CountError: func(name string) { counted <- name },
		}})
		nc := tls.Client(must(net.Dial("tcp", s.addr)), &tls.Config{
			InsecureSkipVerify: true, NextProtos: []string{"h2"}, MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA},
		})
		nc.SetDeadline(time.Now().Add(servertest.Patience))
		defer nc.Close()
		if err := nc.Handshake(); err != nil {
			t.Fatal(err)
		}
		c := s.over(nc)
		c.out.WriteString(http2.ClientPreface)
		c.fr.WriteSettings()
		c.headers(1, true, get...)
		c.send()
		want := map[bool]string{false: "GOAWAY INADEQUATE_SECURITY", true: "200"}[permit]
		if a := c.read(1); a.outcome() != want {
			t.Errorf("%+v", a)
		}
		if !permit && servertest.Await(t, counted, "a count") != "conn_inadequate_security" {
			t.Error("another name")
		}
		if log := s.log.String(); log != "" { // as in net/http: scanners would fill the log
			t.Errorf("logged %q", log)
		}
	}
}

func TestMaxHandlers(t *testing.T) {
	t.Parallel()
	each(t, "oracle inline", func(t *testing.T, kind string) {
		var running, most atomic.Int64
		began, release := make(chan bool, 100), make(chan bool)
		s := serve(t, kind, &chert.Server{MaxHandlers: 2, QueueLength: 3, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			if r.URL.Path == "/wait" {
				began <- true
				<-release
			}
		})})
		c := s.raw()
		for i := range uint32(6) {
			c.headers(2*i+1, true, path(get, "/wait")...)
		}
		c.send()
		if a := c.read(11); a.outcome() != "503" || a.field("retry-after") == "" {
			t.Errorf("beyond the queue: %+v", a)
		}
		c.fr.WriteRSTStream(9, 8) // it waits
		c.send()
		<-began
		<-began
		close(release)
		for range 2 {
			<-began
		}
		servertest.Eventually(t, "all have ended", func() bool { return running.Load() == 0 })
		if n := most.Load(); n != 2 {
			t.Errorf("%d ran at once", n)
		}
		c = s.raw()
		for i := range uint32(30) {
			if a := c.get(2*i+1, "/"); a.outcome() != "200" {
				t.Fatalf("afterwards: %+v", a)
			}
		}
		// Those that wait when their connection ends are forgotten.
		release = make(chan bool)
		waiting := s.raw()
		for i := range uint32(5) {
			waiting.headers(2*i+1, true, path(get, "/wait")...)
		}
		waiting.send()
		<-began
		<-began
		waiting.Close()
		close(release)
		servertest.Eventually(t, "there is room", func() bool {
			c := s.raw()
			defer c.Close()
			return c.get(1, "/").outcome() == "200"
		})
	})
}

// Windows of every size, also those that become negative, give the whole answer.
func TestWindows(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(http.TrailerPrefix+"X-End", "yes")
			w.Write(make([]byte, 20_000))
		})})
		for _, step := range []uint32{1, 999, 16 << 10} {
			c := s.raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
			c.headers(1, true, get...)
			c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			if step == 1 {
				step = 1000
				c.fr.WriteWindowUpdate(1, 1)
			}
			c.send()
			got, fields, ended := 0, 0, false
			for !ended {
				switch f := c.next().(type) {
				case nil:
					t.Fatal("closed")
				case *http2.HeadersFrame:
					c.dec.DecodeFull(f.HeaderBlockFragment())
					fields++
					ended = f.StreamEnded()
					c.fr.WriteWindowUpdate(1, step)
					c.send()
				case *http2.DataFrame:
					got += len(f.Data())
					c.fr.WriteWindowUpdate(1, step)
					c.fr.WriteWindowUpdate(0, step)
					c.send()
				}
			}
			if got != 20_000 || fields != 2 {
				t.Errorf("%d bytes, %d blocks", got, fields)
			}
		}
	})
}

// Many clients do many things at once.
func TestStress(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(mux)})
		clients, rounds := 4, 20
		if testing.Short() {
			rounds = 5
		}
		var all sync.WaitGroup
		for i := range clients {
			c := s.client()
			for j := range 8 {
				all.Go(func() {
					for k := range rounds {
						body := strings.Repeat(fmt.Sprint(i, j, k, " "), (i*7919+j*104729+k*1299709)%30_000)
						ctx, cancel := context.WithCancel(context.Background())
						req := must(http.NewRequestWithContext(ctx, "POST", s.url("/echo"), strings.NewReader(body)))
						res, err := c.Do(req)
						if err != nil {
							t.Error(err)
							cancel()
							continue
						}
						if k%5 == 4 {
							cancel()
						}
						got, err := io.ReadAll(res.Body)
						if res.Body.Close(); k%5 != 4 && (err != nil || string(got) != body) {
							t.Errorf("%d of %d bytes, %v", len(got), len(body), err)
						}
						cancel()
					}
				})
			}
		}
		all.Wait()
	})
}

type watched struct{ got chan wire.Delivery }

func (w watched) Keep()                {}
func (w watched) Sent(d wire.Delivery) { w.got <- d }

// Direct handlers answer as they do over HTTP/1.
func TestDirect(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789", 30_000)
	got := make(chan wire.Delivery, 10)
	h := direct.HandlerFunc(func(x *direct.Exchange) {
		switch string(x.Path()) {
		case "/fields":
			fmt.Fprintf(x, "%s %s %s %s %q %q %q", x.Method(), x.Wire().Target(), x.RawQuery(), x.Host(), x.Wire().Fields().Get("X-A"), x.Wire().Fields().Get("user-agent"), x.Wire().Fields().Get("Host"))
			n := 0
			for name := range x.Wire().Fields().All() {
				if name[0] != ':' {
					n++
				}
			}
			fmt.Fprint(x, n)
		case "/large":
			x.WriteString(large)
		case "/none":
			x.SetStatus(http.StatusNoContent)
		case "/panic":
			panic(http.ErrAbortHandler)
		case "/watched":
			x.Wire().Watch(watched{got})
			x.WriteString("watched")
		case "/field":
			x.SetHeader("X-B", "c")
			x.SetHeader("Content-Type", "x/y")
		}
	})
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: h})
		c := s.client()
		for _, tt := range []struct{ path, want string }{
			{"/fields?a=b", `GET /fields?a=b a=b example.com "1" "Go-http-client/2.0" ""2`},
			{"/large", large},
			{"/field", ""},
			{"/none", ""},
		} {
			req := must(http.NewRequest("GET", s.url(tt.path), nil))
			req.Host = "example.com"
			req.Header.Set("X-A", "1")
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if string(body) != tt.want || err != nil || tt.path == "/field" && res.Header.Get("X-B") != "c" || tt.path == "/none" && res.StatusCode != 204 {
				t.Errorf("%s: %d %.100q, %v", tt.path, res.StatusCode, body, err)
			}
			res.Body.Close()
		}
		r := s.raw()
		if a := r.get(1, "/panic"); a.reset != "INTERNAL_ERROR" {
			t.Errorf("%+v", a)
		}
		// A body that has not been taken when the client resets, or leaves.
		r.headers(3, true, path(get, "/large")...)
		r.send()
		for n := 0; n < 60_000; {
			if f, ok := r.next().(*http2.DataFrame); ok {
				n += len(f.Data())
			}
		}
		r.fr.WriteRSTStream(3, 8)
		r.fr.WriteWindowUpdate(0, 1<<20)
		r.send()
		if a := r.get(5, "/fields"); a.outcome() != "200" {
			t.Errorf("%+v", a)
		}
		r.headers(7, true, path(get, "/large")...)
		r.send()
		r.Close()
	})
}

// Who watches an answer learns once what has become of it, when it has been sent or
// will not be.
func TestWatch(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"plain", "direct"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			each(t, "oracle", func(t *testing.T, kind string) {
				got := make(chan wire.Delivery, 10)
				large := strings.Repeat("x", 200_000)
				var h http.Handler = hf(func(w http.ResponseWriter, r *http.Request) {
					wire.Watch(w, watched{got})
					switch r.URL.Path {
					case "/panic":
						panic(http.ErrAbortHandler)
					case "/large":
						io.WriteString(w, large)
					}
					io.WriteString(w, "watched")
				})
				if way == "direct" {
					h = direct.HandlerFunc(func(x *direct.Exchange) {
						x.Wire().Watch(watched{got})
						switch string(x.Path()) {
						case "/panic":
							panic(http.ErrAbortHandler)
						case "/large":
							x.WriteString(large)
						}
						x.WriteString("watched")
					})
				}
				s := serve(t, kind, &chert.Server{Handler: h})
				c := s.raw()
				for i := range uint32(20) {
					c.get(2*i+1, "/")
					if d := servertest.Await(t, got, "the watcher"); d.Status != 200 || d.Body != 7 || !d.Complete {
						t.Fatalf("%+v", d)
					}
				}
				c.get(51, "/panic")
				if d := servertest.Await(t, got, "the watcher"); d.Complete {
					t.Errorf("panic: %+v", d)
				}
				c.headers(53, true, path(get, "/large")...)
				c.send()
				for n := 0; n < 60_000; {
					if f, ok := c.next().(*http2.DataFrame); ok {
						n += len(f.Data())
					}
				}
				c.fr.WriteRSTStream(53, 8)
				c.send()
				if d := servertest.Await(t, got, "the watcher"); d.Complete {
					t.Errorf("reset: %+v", d)
				}
				c.headers(55, true, path(get, "/large")...)
				c.send()
				c.next()
				c.Close()
				if d := servertest.Await(t, got, "the watcher"); d.Complete {
					t.Errorf("gone: %+v", d)
				}
				if len(got) > 0 {
					t.Error("told twice")
				}
			})
		})
	}
}

// Others' clients.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, pkg string
		args      []string
		want      string
	}{
		{"curl", "curl", []string{"-sS", "--http2-prior-knowledge", "-d", "body", "-w", " %{http_version} %{http_code}"}, "body 2 200"},
		{"nghttp", "nghttp2-client", []string{"-d", "FILE"}, "body"},
		{"h2load", "nghttp2-client", []string{"-n", "2000", "-c", "4", "-m", "20"}, "2000 succeeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bin := tool(t, tt.name, tt.pkg)
			each(t, "oracle tls", func(t *testing.T, kind string) {
				s := serve(t, kind, &chert.Server{Handler: hf(handlers["/echo"])})
				file := filepath.Join(t.TempDir(), "body")
				os.WriteFile(file, []byte("body"), 0o600)
				args := strings.Split(strings.ReplaceAll(strings.Join(tt.args, "\x00"), "FILE", file), "\x00")
				cmd := exec.Command(bin, append(args, s.url("/echo"))...)
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), tt.want) {
					t.Errorf("%v: %s", err, out)
				}
			})
		})
	}
}

// TestHTTPX is Python's httpx, with python-h2. One request after another: with several
// threads it opens streams out of order, which net/http refuses as well.
func TestHTTPX(t *testing.T) {
	t.Parallel()
	python := ""
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import httpx, h2").Run() == nil {
			python = name
		}
	}
	if python == "" {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatal("httpx with HTTP/2 is not installed; the Debian packages are python3-httpx and python3-h2")
		}
		t.Skip("httpx with HTTP/2 is not installed; the Debian packages are python3-httpx and python3-h2")
	}
	const script = `
import httpx, sys
with httpx.Client(http1=False, http2=True, verify=False, timeout=60, trust_env=False) as c:
    for n in range(40):
        body = bytes([n]) * n * 5000
        r = c.post(sys.argv[1], content=body)
        assert r.http_version == "HTTP/2" and r.status_code == 200 and r.content == body, (n, r)
print("done")
`
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(handlers["/echo"])})
		out, err := exec.Command(python, "-c", script, s.url("/echo")).CombinedOutput()
		if err != nil || string(out) != "done\n" {
			t.Errorf("%v: %s", err, out)
		}
	})
}
