package middleware

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// serveLogged serves h on both engines of chert and calls f with an address and
// a function that stops the server.
func serveLogged(t *testing.T, h http.Handler, l *AccessLog, f func(t *testing.T, addr string, stop func())) {
	for name, e := range map[string]chert.Engine{"auto": chert.EngineAuto, "goroutines": chert.EngineGoroutines} {
		t.Run(name, func(t *testing.T) {
			srv := &chert.Server{Handler: h, Engine: e, Refused: l.Refused}
			ln, err := srv.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- srv.Serve(ln) }()
			stop := sync.OnceFunc(func() {
				if err := srv.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
				<-done
			})
			defer stop()
			f(t, ln.Addr().String(), stop)
		})
	}
}

func ask(t *testing.T, addr, request string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	return c
}

// A client that leaves in the middle of a file is logged with what was sent, how
// long it took, and that it was not all.
func TestAccessLogCut(t *testing.T) {
	const size = 300 << 20
	file, err := os.Create(filepath.Join(t.TempDir(), "big"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	h := direct.HandlerFunc(func(x *direct.Exchange) {
		x.SetHeader("Content-Type", "x/y")
		x.SendFile(direct.File{File: file, Len: size})
	})
	for _, format := range []LogFormat{LogCombined, LogText} {
		var out locked
		l := NewAccessLog(&AccessLogOptions{Format: format, Latency: true, Output: &out})
		serveLogged(t, l.Wrap(h), l, func(t *testing.T, addr string, stop func()) {
			out.Reset()
			c := ask(t, addr, "GET /big HTTP/1.1\r\nHost: a\r\nUser-Agent: ua\r\n\r\n")
			if _, err := io.CopyN(io.Discard, c, 29<<20); err != nil {
				t.Fatal(err)
			}
			const pause = 50 * time.Millisecond
			time.Sleep(pause) // the client has not left yet
			c.Close()
			stop()
			l.Flush()
			form := `"GET /big HTTP/1\.1" 200 (\d+) "-" "ua" (\d+)` + "\n"
			if format == LogText {
				form = `method=GET path=/big status=200 bytes=(\d+) latency=(\S+) remote=127\.0\.0\.1 host=a proto=HTTP/1\.1 aborted=true user_agent=ua` + "\n"
			}
			m := regexp.MustCompile(form).FindStringSubmatch(out.String())
			if m == nil {
				t.Fatalf("got %q", out.String())
			}
			n, _ := strconv.ParseInt(m[1], 10, 64)
			took, err := time.ParseDuration(m[2])
			if err != nil {
				us, _ := strconv.Atoi(m[2])
				took = time.Duration(us) * time.Microsecond
			}
			if n < 28<<20 || n > 60<<20 || took < pause {
				t.Errorf("%d bytes in %v", n, took)
			}
		})
	}
}

// Pipelined requests are logged in order, on both ways and for any output, each
// with its own values, and all of them before Shutdown returns.
func TestAccessLogPipelined(t *testing.T) {
	const n = 300
	for name, o := range map[string]AccessLogOptions{
		"combined": {}, "small buffer": {BufferSize: 500}, "at once": {BufferSize: -1}, "text": {Format: LogText}, "json": {Format: LogJSON, BufferSize: -1},
		"vhost": {Format: LogVhostCombined, Latency: true, RequestID: true}, "logger": {},
	} {
		for way, h := range map[string]http.Handler{"direct": hello, "plain": plainHello} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				var out locked
				o := o // both ways run at the same time
				o.Output = &out
				if name == "logger" {
					o.Logger = slog.New(slog.NewTextHandler(&out, nil))
				}
				l := NewAccessLog(&o)
				serveLogged(t, l.Wrap(h), l, func(t *testing.T, addr string, stop func()) {
					out.Reset()
					var all strings.Builder
					for i := range n {
						fmt.Fprintf(&all, "GET /%d/ HTTP/1.1\r\nHost: h%d\r\nUser-Agent: ua-%d\r\n\r\n", i, i, i)
					}
					c := ask(t, addr, all.String())
					go c.(*net.TCPConn).CloseWrite()
					if b, err := io.ReadAll(c); err != nil || bytes.Count(b, []byte("hello")) != n {
						t.Fatal(err)
					}
					stop()
					l.Flush()
					lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
					if len(lines) != n {
						t.Fatalf("%d lines", len(lines))
					}
					for i, line := range lines {
						if !strings.Contains(line, fmt.Sprintf("/%d/", i)) || !strings.Contains(line, fmt.Sprintf("ua-%d", i)) || strings.Contains(line, "aborted") {
							t.Fatalf("%d: %s", i, line)
						}
					}
				})
			})
		}
	}
}

// The bytes are those that were sent, also if other middleware has changed the
// handler's body.
func TestAccessLogOutside(t *testing.T) {
	for _, inside := range []bool{false, true} {
		var out locked
		l := NewAccessLog(&AccessLogOptions{Format: LogCommon, Output: &out})
		body := strings.Repeat("hello ", 5000)
		chain := []func(http.Handler) http.Handler{Must(Compress(nil)), l.Wrap}
		if inside {
			chain = []func(http.Handler) http.Handler{l.Wrap, Must(Compress(nil))}
		}
		for way, h := range map[string]http.Handler{
			"plain": hf(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				io.WriteString(w, body)
			}),
			"direct": direct.HandlerFunc(func(x *direct.Exchange) { x.SetHeader("Content-Type", "text/plain"); x.WriteString(body) }),
		} {
			serveLogged(t, Chain(h, chain...), l, func(t *testing.T, addr string, stop func()) {
				out.Reset()
				c := ask(t, addr, "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n")
				b, err := io.ReadAll(c)
				if err != nil {
					t.Fatal(err)
				}
				stop()
				l.Flush()
				m := regexp.MustCompile(`200 (\d+)\n$`).FindStringSubmatch(out.String())
				if m == nil {
					t.Fatalf("%q", out.String())
				}
				head, content, _ := strings.Cut(string(b), "\r\n\r\n")
				n, _ := strconv.Atoi(m[1])
				if n > len(content) || n < len(content)/2 || n > 5000 || !strings.Contains(head, "gzip") {
					t.Errorf("%s, inside %v: %d logged, %d came:\n%s", way, inside, n, len(content), head)
				}
			})
		}
	}
}

func TestAccessLogRefused(t *testing.T) {
	const from = "192.0.2.1 - - [21/Nov/2026:04:05:06 +0100] "
	for _, tt := range []struct {
		o    AccessLogOptions
		r    wire.Refusal
		want string
	}{
		{AccessLogOptions{}, wire.Refusal{Status: 400, Line: `GET /%zz`}, from + `"GET /%zz" 400 - "-" "-"`},
		{AccessLogOptions{Format: LogCommon}, wire.Refusal{Status: 400, Line: `\x16`}, from + `"\x16" 400 -`},
		{AccessLogOptions{Format: LogCommon}, wire.Refusal{Status: 503}, from + `"-" 503 -`},
		{AccessLogOptions{Format: LogVhostCombined, Latency: true, RequestID: true}, wire.Refusal{}, "-:80 " + from + `"-" - - "-" "-" 0 -`},
		{AccessLogOptions{Format: LogVhostCombined, Port: 443}, wire.Refusal{LocalAddr: "[::1]:8500", Status: 400}, "-:8500 " + from + `"-" 400 - "-" "-"`},
		{AccessLogOptions{Format: LogVhostCombined, Port: 443}, wire.Refusal{LocalAddr: "/run/s", Status: 400}, "-:443 " + from + `"-" 400 - "-" "-"`},
		{AccessLogOptions{Format: LogCommon}, wire.Refusal{Omitted: 7}, "- - - [21/Nov/2026:04:05:06 +0100] " + `"7 more were refused" - -`},
		{AccessLogOptions{Format: LogText}, wire.Refusal{Status: 400, Reason: "missing Host", Line: `GET / HTTP/1.1`}, `msg=refused status=400 reason="missing Host" remote=192.0.2.1 line="GET / HTTP/1.1"`},
		{AccessLogOptions{Format: LogJSON}, wire.Refusal{Omitted: 7}, `"msg":"refused","omitted":7}`},
	} {
		var out bytes.Buffer
		tt.o.Output = &out
		l := newTestLog(tt.o)
		if tt.r.Omitted == 0 {
			tt.r.RemoteAddr = "192.0.2.1:1234"
		}
		l.Refused(tt.r)
		if l.Close(); !strings.HasSuffix(out.String(), tt.want+"\n") {
			t.Errorf("got  %q\nwant %q", out.String(), tt.want)
		}
	}
}

// The line of a response that is sent later does not wait for an Output that is
// stuck; later requests do.
func TestAccessLogKept(t *testing.T) {
	for name, o := range map[string]AccessLogOptions{"buffer": {BufferSize: 100}, "at once": {BufferSize: -1}, "text": {Format: LogText, BufferSize: -1}, "logger": {}} {
		pr, pw := io.Pipe()
		o.Output = pw
		if name == "logger" {
			o.Logger = slog.New(slog.NewTextHandler(pw, nil))
		}
		l := NewAccessLog(&o)
		const n = 100
		target := strings.Repeat("x", 1000)
		for i := range n {
			var x direct.Exchange
			exchange(&x, request("GET", fmt.Sprintf("/%d/%s", i, target), ""))
			l.Wrap(hello).(direct.Handler).ServeDirect(&x)
			a := x.Wire().Finish()
			a.Watcher.Keep()
			clear(x.Wire().Target())
			a.Watcher.Sent(wire.Delivery{Status: 200, Complete: true}) // would wait
			if l.lines.Full() || l.later.full.Load() {
				break
			}
		}
		done := make(chan int)
		go func() {
			b, _ := io.ReadAll(pr)
			done <- bytes.Count(b, []byte("/"+target))
		}()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		pw.Close()
		if got := <-done; got == 0 || got > n {
			t.Errorf("%s: %d lines", name, got)
		}
	}
}
