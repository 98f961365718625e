package behave

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// The rest of a body that its handler has not read is drained if it is small,
// so that the connection can be kept.
func TestUnreadBody(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			var n int
			fmt.Sscanf(r.URL.Path, "/%d", &n)
			io.CopyN(io.Discard, r.Body, int64(n))
			switch r.URL.RawQuery {
			case "close":
				r.Body.Close()
			case "nil":
				r.Body = nil
			case "big": // the head is sent before the handler ends
				w.Write(servertest.Pattern(10_000))
				return
			}
			put(w, "answer")
		})})
		for _, tt := range []struct {
			why  string
			read int
			size int
			kept bool
		}{
			{"a little", 0, 10, true},
			{"some read", 5, 10, true},
			{"all but the end read", 10, 10, true},
			{"more than a buffer", 0, 100_000, true},
			{"as much as is drained", 0, 256<<10 - 1, true},
			{"most of a large one read", 1 << 20, 1<<20 + 1000, true},
			{"more than is drained", 0, 256<<10 + 1, false},
			{"a large one", 0, 1 << 20, false},
			{"the start of a large one read", 10, 1 << 20, false},
		} {
			for _, how := range []string{"", "close", "nil", "big"} {
				for _, chunked := range []bool{false, true} {
					body := string(servertest.Pattern(tt.size))
					req := fmt.Sprintf("POST /%d?%s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", tt.read, how, tt.size, body)
					if chunked {
						req = fmt.Sprintf("POST /%d?%s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n%s", tt.read, how, servertest.Chunks(body, 8000))
					}
					c := ts.Dial()
					name := fmt.Sprintf("%s (%q, chunked=%v)", tt.why, how, chunked)
					// A client that sends everything before it reads must see
					// the response.
					_, err := io.WriteString(c.Conn, req)
					if err != nil && tt.kept {
						t.Fatalf("%s: %v", name, err)
					}
					res, err := http.ReadResponse(c.R, nil)
					if errors.Is(err, syscall.ECONNRESET) && e == engines.NetHTTP && !tt.kept {
						c.Close() // net/http gives up after half a second
						continue
					}
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					got, err := io.ReadAll(res.Body)
					if err != nil || how != "big" && string(got) != "answer" || how == "big" && string(got) != string(servertest.Pattern(10_000)) {
						t.Errorf("%s: answer is %s, %v", name, servertest.Brief(string(got)), err)
					}
					if tt.kept {
						c.Send("GET /0 HTTP/1.1\r\nHost: h\r\n\r\n")
						c.Response("GET")
					} else {
						// Closing the body early: net/http only closes the
						// connection, without Connection: close.
						if !res.Close && how != "close" {
							t.Errorf("%s: no Connection: close", name)
						}
						c.CloseWrite()
						c.Ended()
					}
					c.Close()
				}
			}
		}
	})
}

// A client that sends 12 MiB before it reads receives the answer that has not read them: such a
// body is below conn.LingerBytes, and above what sockets hold.
func TestUnreadUpload(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		})})
		body := make([]byte, 12<<20)
		upload := func() error {
			c := ts.Dial()
			defer c.Close()
			c.Conn.(*net.TCPConn).SetWriteBuffer(64 << 10)
			fmt.Fprintf(c.Conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", len(body))
			if _, err := c.Conn.Write(body); err != nil {
				return err
			}
			res, err := http.ReadResponse(c.R, nil)
			if err == nil && res.StatusCode != http.StatusRequestEntityTooLarge {
				err = errors.New(res.Status)
			}
			return err
		}
		err := upload()
		for end := time.Now().Add(servertest.Patience); err != nil && time.Now().Before(end); {
			err = upload() // a busy machine may not read it in conn.LingerFor
		}
		if err != nil {
			t.Error(err)
		}
	})
}

func TestExpectContinue(t *testing.T) {
	t.Parallel()
	const cont = "HTTP/1.1 100 Continue\r\n\r\n"
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/read", "/read-flush":
				b, err := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%s %v", b, err)
			case "/close":
				r.Body.Close()
			case "/close-read":
				r.Body.Close()
				_, err := r.Body.Read(make([]byte, 1))
				fmt.Fprint(w, err)
			case "/header":
				w.WriteHeader(403)
			case "/header-read": // too late to invite
				w.WriteHeader(403)
				w.(http.Flusher).Flush()
				b, err := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%s %v", b, err)
			case "/hint-read":
				w.WriteHeader(103)
				b, err := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%s %v", b, err)
			case "/explicit":
				w.WriteHeader(100)
				b, err := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%s %v", b, err)
			case "/empty-read":
				r.Body.Read(nil)
			}
		})})
		for _, tt := range []struct {
			why, path, lines string
			first            string // what arrives before the client sends its body
			wire, want       string
			kept             bool
		}{
			{"invited", "/read", "Expect: 100-continue\r\nContent-Length: 5\r\n", cont, "hello", "hello <nil>", true},
			{"in any case", "/read", "expect: 100-Continue\r\nContent-Length: 5\r\n", cont, "hello", "hello <nil>", true},
			{"invited to send chunks", "/read", "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", cont, servertest.Chunks("hello", 3), "hello <nil>", true},
			{"nothing to send", "/read", "Expect: 100-continue\r\nContent-Length: 0\r\n", "", "", " <nil>", true},
			{"not read", "/", "Expect: 100-continue\r\nContent-Length: 5\r\n", "", "", "", false},
			{"closed", "/close", "Expect: 100-continue\r\nContent-Length: 5\r\n", "", "", "", false},
			{"read when closed", "/close-read", "Expect: 100-continue\r\nContent-Length: 5\r\n", "", "", "http: invalid Read on closed Body", false},
			{"refused", "/header", "Expect: 100-continue\r\nContent-Length: 5\r\n", "", "", "", false},
			{"a hint first", "/hint-read", "Expect: 100-continue\r\nContent-Length: 5\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n" + cont, "hello", "hello <nil>", true},
			{"invited by hand", "/explicit", "Expect: 100-continue\r\nContent-Length: 5\r\n", cont, "hello", "hello <nil>", true},
		} {
			if e == engines.NetHTTP && !tt.kept {
				continue // net/http waits for the body before it closes
			}
			c := ts.Dial()
			c.Send("POST " + tt.path + " HTTP/1.1\r\nHost: h\r\n" + tt.lines + "\r\n")
			c.Want(tt.first)
			c.Send(tt.wire)
			res, body := c.Response("POST")
			if body != tt.want || res.Close == tt.kept {
				t.Errorf("%s: got %v %q, want %q", tt.why, res, body, tt.want)
			}
			if tt.kept {
				c.Get("/")
			} else {
				c.Ended()
			}
			c.Close()
		}
		// The client did not wait; the response had begun when the handler
		// read.
		c := ts.Dial()
		c.Send("POST /header-read HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello")
		if res, body := c.Response("POST"); res.StatusCode != 403 || body != "hello <nil>" || !res.Close {
			t.Errorf("got %v %q", res, body)
		}
		c.Ended()
		// HTTP/1.0 has no 100.
		if got := ts.Exchange("POST /read HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello", false); !strings.HasPrefix(got, "HTTP/1.0 200 ") {
			t.Errorf("got %q", got)
		}
	})
}

func TestExpectUnknown(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) { // net/http waits for the body first
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			t.Errorf("%q was served", r.Header["Expect"])
		})})
		for _, lines := range []string{
			"Expect: tea\r\n",
			"Expect: tea\r\nContent-Length: 5\r\n",
			"Expect: 200-ok\r\nTransfer-Encoding: chunked\r\n",
		} {
			got := ts.Exchange("POST / HTTP/1.1\r\nHost: h\r\n"+lines+"\r\n", false)
			if !strings.HasPrefix(got, "HTTP/1.1 417 ") || !strings.Contains(got, "Connection: close\r\n") || strings.Count(got, "HTTP/1.1 ") != 1 {
				t.Errorf("%q: got %q", lines, got)
			}
		}
	})
}

// A body that arrives too slowly to be drained does not mean that its client is
// gone: it waits for the response.
func TestOwnDrainIsNoTimeout(t *testing.T) {
	t.Parallel()
	bubbles(t, func(t *testing.T, e chert.Engine) {
		if e == engines.NetHTTP {
			return // drains without a limit
		}
		seen := make(chan error, 1)
		_, m := engines.StartMemory(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/closed" {
				r.Body.Close()
				return
			}
			w.Write(servertest.Pattern(5000)) // the head is sent, and before it the body is drained
			seen <- r.Context().Err()
		})})
		for _, path := range []string{"/written", "/closed"} {
			c := m.Patient(t)
			c.SendAside("POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nslow")
			if res, _ := c.Response("POST"); res.StatusCode != 200 {
				t.Errorf("%s: got %s", path, res.Status)
			}
			c.Close()
		}
		if err := servertest.Await(t, seen, "the handler"); err != nil {
			t.Errorf("the context of a client that is there: %v", err)
		}
	})
}
