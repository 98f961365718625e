package behave

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestRequestKept retains every request after its handler, as programs do that
// log in the background, and checks at the end that none has changed.
func TestRequestKept(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		type keepsake struct {
			r    *http.Request
			was  string
			body string
		}
		var mu sync.Mutex
		var kept []keepsake
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			kept = append(kept, keepsake{r, describe(r), string(b)})
		})})
		const conns, each = 4, 40
		var clients sync.WaitGroup
		for k := range conns {
			c := ts.Dial()
			clients.Go(func() {
				defer c.Close()
				for i := range each {
					// Lengths and letters differ, so that a reused buffer shows.
					mark := strings.Repeat(string(rune('a'+(i+k)%26)), 1+i*7%60)
					fields := fmt.Sprintf("Host: %s\r\nX-%s: %s\r\nUser-Agent: %s\r\nCookie: a=%s\r\nCookie: b=%s\r\n", mark, mark, mark, mark, mark, mark)
					head, body := "POST /"+mark+"?q="+mark+" HTTP/1.1\r\n"+fields, mark
					if i%2 == 0 {
						head += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(mark))
					} else {
						head += "Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
						body = strings.TrimSuffix(servertest.Chunks(mark, 10), "\r\n") + "X-T: " + mark + "\r\n\r\n"
					}
					if i%3 == 0 {
						c.SendSlowly(head+body, 50)
					} else {
						c.Send(head + body)
					}
					c.Response("POST")
				}
			})
		}
		clients.Wait()
		// All connections have ended; other descriptors may have their numbers.
		mu.Lock()
		defer mu.Unlock()
		if len(kept) != conns*each {
			t.Fatalf("%d requests were served", len(kept))
		}
		for _, k := range kept {
			if now := describe(k.r); now != k.was {
				t.Errorf("a kept request has changed:\nwas %s\nis  %s", k.was, now)
			}
			mark := strings.Trim(k.r.URL.Path, "/")
			if k.body != mark || k.r.URL.RawQuery != "q="+mark || k.r.Host != mark || k.r.UserAgent() != mark || k.r.Trailer != nil && k.r.Trailer.Get("X-T") != mark {
				t.Errorf("mixed up: %s", describe(k.r))
			}
			ctx := k.r.Context()
			servertest.WaitDone(t, ctx, "a context whose handler has returned is done")
			if ctx.Err() != context.Canceled {
				t.Errorf("Err is %v", ctx.Err())
			}
			if a, _ := ctx.Value(http.LocalAddrContextKey).(net.Addr); a == nil || a.String() != ts.ListenAddr {
				t.Errorf("LocalAddrContextKey gives %v, want %v", a, ts.ListenAddr)
			}
			if n, err := k.r.Body.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("Body.Read gave %d, %v", n, err)
			}
		}
	})
}

// TestKeepAlive requests two responses on one connection and checks that both
// come.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	const (
		length  = iota // the length is known
		flushed        // it is not
		empty          // no body at all
		status204
		closes // the handler says close
		keeps  // the handler says keep-alive
	)
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path[1] - '0' {
			case flushed:
				io.WriteString(w, "a")
				w.(http.Flusher).Flush()
			case empty:
				return
			case status204:
				w.WriteHeader(204)
				return
			case closes:
				w.Header().Set("Connection", "close")
			case keeps:
				w.Header().Set("Connection", "keep-alive")
			}
			io.WriteString(w, "b")
		})})
		for _, tt := range []struct {
			version, lines string
			what           int
			kept           bool
			connection     string // the response's field
			why            string
		}{
			{"1.1", "", length, true, "", "1.1 persists"},
			{"1.1", "", flushed, true, "", "chunks have an end of their own"},
			{"1.1", "", empty, true, "", "no body"},
			{"1.1", "", status204, true, "", "no body allowed"},
			{"1.1", "", closes, false, "close", "the handler's will"},
			{"1.1", "", keeps, true, "keep-alive", "harmless"},
			{"1.1", "Connection: close\r\n", length, false, "close", "the client's will"},
			{"1.1", "Connection: Close\r\n", length, false, "close", "in any case"},
			{"1.1", "Connection: foo, close\r\n", length, false, "close", "in a list"},
			{"1.1", "Connection: foo\r\nConnection: close\r\n", length, false, "close", "in a second line"},
			{"1.1", "Connection: keep-alive\r\n", length, true, "", "needless"},
			{"1.1", "Connection: close, keep-alive\r\n", length, false, "close", "close wins"},
			{"1.1", "Connection: closed\r\n", length, true, "", "another word"},
			{"1.1", "Connection: close\r\n", keeps, false, "close", "the handler cannot keep it"},
			{"1.1", "Keep-Alive: timeout=5\r\n", length, true, "", "an ornament"},
			{"1.0", "", length, false, "", "1.0 does not persist"},
			{"1.0", "", empty, false, "", "without a body neither"},
			{"1.0", "", keeps, false, "", "nor by the handler's will"},
			{"1.0", "Connection: keep-alive\r\n", length, true, "keep-alive", "unless asked to"},
			{"1.0", "Connection: Keep-Alive\r\n", length, true, "keep-alive", "in any case"},
			{"1.0", "Connection: keep-alive\r\n", empty, true, "keep-alive", "a length of 0 is one"},
			{"1.0", "Connection: keep-alive\r\n", status204, true, "keep-alive", "no body allowed"},
			{"1.0", "Connection: keep-alive\r\n", flushed, false, "", "only the end ends the body"},
			{"1.0", "Connection: keep-alive\r\n", closes, false, "close", "the handler's will"},
			{"1.0", "Connection: keep-alive\r\n", keeps, true, "keep-alive", "both agree"},
			{"1.0", "Connection: close, keep-alive\r\n", length, false, "", "unlike net/http: close wins (RFC 9112 section 9.3)"},
			{"1.0", "Connection: close\r\n", length, false, "", "as it is anyway"},
		} {
			if e == engines.NetHTTP && strings.HasPrefix(tt.why, unlike) {
				continue
			}
			req := fmt.Sprintf("GET /%d HTTP/%s\r\nHost: h\r\n%s\r\n", tt.what, tt.version, tt.lines)
			for _, slowly := range []bool{false, true} {
				// Both in one write: if the server closed after the first
				// response, a second write could meet a reset.
				c := ts.Dial()
				if slowly {
					c.SendSlowly(req, 1)
				} else {
					c.Send(req + req)
				}
				res, _ := c.Response("GET")
				if got := res.Header.Get("Connection"); got != tt.connection {
					// ReadResponse takes Connection: close away.
					if !(tt.connection == "close" && res.Close && got == "") {
						t.Errorf("%s: HTTP/%s %q %d: Connection is %q, want %q", tt.why, tt.version, tt.lines, tt.what, got, tt.connection)
					}
				}
				if tt.kept {
					if slowly {
						c.Send(req)
					}
					c.Response("GET")
					continue
				}
				c.CloseWrite() // so that a connection that was wrongly kept ends
				if rest := c.UpToEnd(); rest != "" {
					t.Errorf("%s: HTTP/%s %q %d: served on, got %q", tt.why, tt.version, tt.lines, tt.what, rest)
				}
				c.Close()
			}
		}
	})
}

func TestPipelining(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("unread") {
				fmt.Fprintf(w, "%s unread", r.URL.Path)
				return
			}
			b, err := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %d %s %v", r.URL.Path, len(b), b, err)
		})})
		const n = 16
		get := func(i int) (req, want string) {
			return fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: h\r\n\r\n", i), fmt.Sprintf("/%d 0  <nil>", i)
		}
		length := func(i int) (req, want string) {
			body := strings.Repeat("x", i)
			return fmt.Sprintf("POST /%d HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", i, i, body), fmt.Sprintf("/%d %d %s <nil>", i, i, body)
		}
		chunked := func(i int) (req, want string) {
			body := strings.Repeat("y", 3*i)
			return fmt.Sprintf("POST /%d HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n%s", i, servertest.Chunks(body, 7)), fmt.Sprintf("/%d %d %s <nil>", i, 3*i, body)
		}
		unread := func(i int) (req, want string) {
			return fmt.Sprintf("POST /%d?unread HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nGET /", i), fmt.Sprintf("/%d unread", i)
		}
		newlines := func(i int) (req, want string) {
			if req, want = length(i); i > 0 {
				req = "\r\n" + req // RFC 9112 section 2.2; net/http: only after a POST
			}
			return req, want
		}
		mixed := func(i int) (req, want string) {
			return []func(int) (string, string){get, length, chunked, unread, newlines}[i%5](i)
		}
		for _, tt := range []struct {
			why string
			gen func(i int) (req, want string)
		}{
			{"heads only", get},
			{"with lengths", length},
			{"with chunks", chunked},
			{"with bodies that nobody reads", unread},
			{"with an empty line before each", newlines},
			{"all of these", mixed},
		} {
			for _, size := range []int{1 << 20, 1, 7, 4096} {
				var reqs strings.Builder
				var want []string
				for i := range n {
					req, w := tt.gen(i)
					reqs.WriteString(req)
					want = append(want, w)
				}
				c := ts.Dial()
				c.SendSlowly(reqs.String(), size)
				for i, w := range want {
					if _, body := c.Response("POST"); body != w {
						t.Fatalf("%s, %d bytes at a time: answer %d is %q, want %q", tt.why, size, i, body, w)
					}
				}
				c.CloseWrite()
				c.Ended()
				c.Close()
			}
		}
	})
}

// A client that sends much ahead and reads late must get all its responses.
func TestPipeliningManyAhead(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s %s", r.URL.Path, strings.Repeat("z", 500))
		})})
		c := ts.Dial()
		const n = 1000
		sent := make(chan error, 1)
		go func() {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, "GET /%d HTTP/1.1\r\nHost: h\r\n\r\n", i)
			}
			_, err := io.WriteString(c.Conn, b.String())
			sent <- err
		}()
		for i := range n {
			if _, body := c.Response("GET"); !strings.HasPrefix(body, fmt.Sprintf("/%d zzz", i)) {
				t.Fatalf("answer %d is %q", i, body[:10])
			}
		}
		if err := servertest.Await(t, sent, "the client's write"); err != nil {
			t.Error(err)
		}
	})
}

// RFC 9112 section 2.2: empty lines before a request are ignored, up to two of
// them; more, or half of one, are not.
func TestLeadingCRLF(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {})})
		for before, status := range map[string]string{"\r\n": "200", "\r\n\r\n": "200", "\r\n\r\n\r\n": "400", "\n": "400", "\r": "400", " ": "400"} {
			for _, slowly := range []bool{false, true} {
				if got := ts.Exchange(before+tail, slowly); !strings.HasPrefix(got, "HTTP/1.1 "+status+" ") {
					t.Errorf("%q (slowly=%v): got %q", before, slowly, got)
				}
			}
		}
	})
}
