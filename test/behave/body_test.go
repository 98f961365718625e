package behave

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestBody(t *testing.T) {
	t.Parallel()
	long := string(servertest.Pattern(100_000))
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		type result struct {
			body    string
			err     error
			trailer http.Header
			again   error
		}
		got := make(chan result, 1)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			var src io.Reader = r.Body
			if r.URL.Path == "/byte" {
				src = iotest.OneByteReader(src)
			}
			b, err := io.ReadAll(src)
			_, again := r.Body.Read(make([]byte, 1))
			got <- result{string(b), err, r.Trailer, again}
		})})
		for _, tt := range []struct {
			why, lines, wire, want string
			trailer                http.Header
		}{
			{"a length", "Content-Length: 5\r\n", "hello", "hello", nil},
			{"a length of none", "Content-Length: 0\r\n", "", "", nil},
			{"no framing", "", "", "", nil},
			{"a long one", "Content-Length: 100000\r\n", long, long, nil},
			{"a chunk", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n", "hello", nil},
			{"no chunk", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n", "", nil},
			{"one byte chunks", "Transfer-Encoding: chunked\r\n", servertest.Chunks("hello", 1), "hello", nil},
			{"long chunks", "Transfer-Encoding: chunked\r\n", servertest.Chunks(long, 30_000), long, nil},
			{"sizes in odd notation", "Transfer-Encoding: chunked\r\n", "0005\r\nhello\r\nA\r\n0123456789\r\na\r\n0123456789\r\n000\r\n\r\n", "hello01234567890123456789", nil},
			{"extensions", "Transfer-Encoding: chunked\r\n", "5;a\r\nhello\r\n3;a=b;c=\"d;\\\"\"\r\nabc\r\n0;last\r\n\r\n", "helloabc", nil},
			{"data that looks like framing", "Transfer-Encoding: chunked\r\n", "7\r\n0\r\n\r\nGE\r\n0\r\n\r\n", "0\r\n\r\nGE", nil},
			{"a declared trailer", "Transfer-Encoding: chunked\r\nTrailer: x-sum\r\n", "5\r\nhello\r\n0\r\nX-SUM: 1\r\n\r\n", "hello", http.Header{"X-Sum": {"1"}}},
			{"a trailer declared and not sent", "Transfer-Encoding: chunked\r\nTrailer: A\r\n", "0\r\n\r\n", "", http.Header{"A": nil}},
			{"a trailer not declared", "Transfer-Encoding: chunked\r\n", "0\r\nA: 1\r\nB: 2\r\nA: 3\r\n\r\n", "", http.Header{"A": {"1", "3"}, "B": {"2"}}},
		} {
			for _, path := range []string{"/", "/byte"} {
				for _, size := range []int{1 << 20, 1, 3} {
					if len(tt.wire) > 1000 && size < 1<<20 {
						size *= 997
					}
					c := ts.Dial()
					req := "POST " + path + " HTTP/1.1\r\nHost: h\r\n" + tt.lines + "\r\n" + tt.wire
					for range 2 {
						c.SendSlowly(req, size)
						r := servertest.Await(t, got, "the handler")
						if r.body != tt.want || r.err != nil || r.again != io.EOF || len(r.trailer) > 0 != (len(tt.trailer) > 0) || len(tt.trailer) > 0 && !reflect.DeepEqual(r.trailer, tt.trailer) {
							t.Fatalf("%s (%s, %d at a time): got %s %v %v %v, want %s %v", tt.why, path, size, servertest.Brief(r.body), r.err, r.again, r.trailer, servertest.Brief(tt.want), tt.trailer)
						}
						c.Response("POST")
					}
					c.Close()
				}
			}
		}
	})
}

// No more trailers are announced than may come: a head of 64 KiB has room for 32,000 names.
func TestAnnouncedTrailersAreFew(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			n := len(r.Trailer)
			io.Copy(io.Discard, r.Body)
			put(w, fmt.Sprint(n, r.Trailer["A"], r.Trailer["Z"]))
		})})
		c := ts.Dial()
		names := "a"
		for i := range 600 {
			names += fmt.Sprintf(",b%d", i)
		}
		c.Send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: " + names + "\r\nTrailer: z\r\n\r\n0\r\nA: b\r\nZ: c\r\n\r\n")
		if r, body := c.Response("POST"); body != "128 [b] [c]" {
			t.Errorf("%d %q", r.StatusCode, body)
		}
	})
}

// Bytes after a body whose end cannot be determined must not be served as a
// request.
func TestBodyBroken(t *testing.T) {
	t.Parallel()
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
	for _, when := range []string{"read", "written", "unread"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			on := engines.Alike
			if when == "written" {
				on = engines.Each // net/http treats some of these as the next request
			}
			on(t, func(t *testing.T, e chert.Engine) {
				errs := make(chan error, 1)
				ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/" {
						t.Errorf("%s was served", r.URL)
						return
					}
					if when == "written" {
						http.NewResponseController(w).EnableFullDuplex()
						put(w, "early")
						w.(http.Flusher).Flush()
					}
					if when != "unread" {
						_, err := io.Copy(io.Discard, r.Body)
						errs <- err
					}
				})})
				for _, tt := range []struct{ why, wire string }{
					{"no size", "\r\nhello\r\n0\r\n\r\n"},
					{"a size that is none", "x\r\nhello\r\n0\r\n\r\n"},
					{"a sign", "+5\r\nhello\r\n0\r\n\r\n"},
					{"a negative size", "-1\r\nhello\r\n0\r\n\r\n"},
					{"a prefix", "0x5\r\nhello\r\n0\r\n\r\n"},
					{"a size that is too large", "fffffffffffffffff\r\nhello\r\n0\r\n\r\n"},
					{"a chunk longer than its size", "3\r\nhello\r\n0\r\n\r\n"},
					{"a bare LF behind the data", "5\r\nhello\n0\r\n\r\n"},
					{"junk in the trailer", "5\r\nhello\r\n0\r\nnot a field\r\n\r\n"},
				} {
					for _, slowly := range []bool{false, true} {
						c := ts.Dial()
						s := "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + tt.wire + smuggled
						if slowly {
							// The server may close before all is sent.
							for i := range len(s) {
								if _, err := io.WriteString(c.Conn, s[i:i+1]); err != nil {
									break
								}
							}
						} else {
							c.Send(s)
						}
						if when != "unread" {
							if err := servertest.Await(t, errs, "the handler"); err == nil {
								t.Errorf("%s: no error", tt.why)
							}
						}
						got := c.UpToEnd()
						if strings.Count(got, "HTTP/1.1 ") != 1 {
							t.Errorf("%s: got %q", tt.why, got)
						}
						if when != "written" && !strings.Contains(got, "\r\nConnection: close\r\n") {
							t.Errorf("%s: no Connection: close in %q", tt.why, got)
						}
						c.Close()
					}
				}
			})
		})
	}
}

func TestBodyCutShort(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		errs := make(chan error, 1)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if len(b) > 5 || string(b) != "hello"[:len(b)] {
				t.Errorf("read %q", b)
			}
			if _, again := r.Body.Read(make([]byte, 1)); again != err && e != engines.NetHTTP {
				t.Errorf("%v became %v", err, again)
			}
			errs <- err
		})})
		for _, tt := range []struct{ why, lines, wire string }{
			{"within a length", "Content-Length: 10", "hello"},
			{"before any of it", "Content-Length: 10", ""},
			{"within a chunk", "Transfer-Encoding: chunked", "a\r\nhello"},
			{"between chunks", "Transfer-Encoding: chunked", "5\r\nhello\r\n"},
			{"within a size", "Transfer-Encoding: chunked", "5\r\nhello\r\n1"},
			{"before the trailer", "Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n"},
			{"within the trailer", "Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\nA: 1\r\n"},
		} {
			for _, slowly := range []bool{false, true} {
				c := ts.Dial()
				c.Send("POST / HTTP/1.1\r\nHost: h\r\n" + tt.lines + "\r\n\r\n")
				if slowly {
					c.SendSlowly(tt.wire, 1)
				} else {
					c.Send(tt.wire)
				}
				c.CloseWrite()
				// net/http has a different error for a cut trailer.
				if err := servertest.Await(t, errs, "the handler"); err == nil || e != engines.NetHTTP && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%s: error is %v", tt.why, err)
				}
				c.UpToEnd()
			}
		}
	})
}

func TestBodyAfterClose(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		var kept io.ReadCloser
		done := make(chan struct{})
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/keep" {
				kept = r.Body
				close(done)
				return
			}
			var b [2]byte
			if r.URL.Path == "/some" {
				io.ReadFull(r.Body, b[:])
			}
			if err := r.Body.Close(); err != nil {
				t.Error(err)
			}
			for range 2 {
				if n, err := r.Body.Read(b[:]); n != 0 || err != http.ErrBodyReadAfterClose {
					t.Errorf("Read gave %d, %v", n, err)
				}
			}
			if err := r.Body.Close(); err != nil {
				t.Error(err)
			}
		})})
		c := ts.Dial()
		for _, req := range []string{
			"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
			"POST /some HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
			"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + servertest.Chunks("hello", 2),
			"POST /some HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + servertest.Chunks("hello", 2),
			"POST /keep HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
			"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
		} {
			c.Send(req) // all on one connection: Close reads the rest
			if res, _ := c.Response("POST"); res.StatusCode != 200 {
				t.Errorf("%q: %v", req, res)
			}
		}
		servertest.Await(t, done, "the handler")
		if n, err := kept.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
			t.Errorf("after the handler's return, Read gave %d, %v", n, err)
		}
	})
}

func TestMaxBytesReader(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 5))
			var tooLarge *http.MaxBytesError
			if errors.As(err, &tooLarge) {
				w.WriteHeader(413)
			} else if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "%d", len(b))
		})})
		for _, tt := range []struct {
			lines, wire string
			status      int
		}{
			{"Content-Length: 5", "hello", 200},
			{"Content-Length: 6", "hello!", 413},
			{"Transfer-Encoding: chunked", servertest.Chunks("hello", 2), 200},
			{"Transfer-Encoding: chunked", servertest.Chunks("hello!", 2), 413},
			{"Transfer-Encoding: chunked", servertest.Chunks(string(servertest.Pattern(300_000)), 1000), 413},
		} {
			c := ts.Dial()
			c.Send("POST / HTTP/1.1\r\nHost: h\r\n" + tt.lines + "\r\n\r\n" + tt.wire)
			if res, body := c.Response("POST"); res.StatusCode != tt.status || body != "5" {
				t.Errorf("%s %s: got %v %q", tt.lines, servertest.Brief(tt.wire), res, body)
			}
		}
	})
}

// With full duplex a handler responds while it reads.
func TestFullDuplex(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			if err := rc.EnableFullDuplex(); err != nil {
				t.Error(err)
			}
			var b [16]byte
			for {
				n, err := r.Body.Read(b[:])
				w.Write(b[:n])
				if ferr := rc.Flush(); ferr != nil {
					t.Error(ferr)
				}
				if err != nil {
					if err != io.EOF {
						t.Error(err)
					}
					return
				}
			}
		})})
		c := ts.Dial()
		for range 2 { // the connection is kept
			c.Send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
			for i := range 10 {
				c.Send(fmt.Sprintf("2\r\n%02d\r\n", i))
				if i == 0 {
					c.Head()
				}
				c.Want(fmt.Sprintf("2\r\n%02d\r\n", i))
			}
			c.Send("0\r\n\r\n")
			c.Want("0\r\n\r\n")
		}
	})
}

// One goroutine reads while the handler writes.
func TestBodyConcurrentReader(t *testing.T) {
	t.Parallel()
	body := string(servertest.Pattern(1 << 20))
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).EnableFullDuplex()
			var reader sync.WaitGroup
			var got []byte
			reader.Go(func() {
				var err error
				if got, err = io.ReadAll(r.Body); err != nil {
					t.Error(err)
				}
			})
			w.Write(servertest.Pattern(1 << 20))
			reader.Wait()
			fmt.Fprintf(w, "%v", string(got) == body)
		})})
		c := ts.Dial()
		for range 2 {
			sent := make(chan error, 1)
			go func() {
				_, err := io.WriteString(c.Conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\n"+body)
				sent <- err
			}()
			if _, got := c.Response("POST"); got != body+"true" {
				t.Errorf("got %s", servertest.Brief(got))
			}
			if err := servertest.Await(t, sent, "the client's write"); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestMultipartCleanup checks that temporary files of an upload are removed.
func TestMultipartCleanup(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		names := make(chan string, 1)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(0); err != nil {
				t.Error(err)
				return
			}
			f, err := r.MultipartForm.File["f"][0].Open()
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			if file, ok := f.(*os.File); ok {
				names <- file.Name()
			} else {
				names <- "" // small enough for memory after all
			}
		})})
		body := "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\n" + string(servertest.Pattern(1000)) + "\r\n--b--\r\n"
		c := ts.Dial()
		c.Send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		name := servertest.Await(t, names, "the handler")
		c.Response("POST")
		if name == "" {
			t.Fatal("no temporary file was made")
		}
		servertest.Eventually(t, "the file is gone", func() bool { _, err := os.Stat(name); return os.IsNotExist(err) })
	})
}

// counting counts the bytes that were read from a connection.
type counting struct {
	net.Conn
	n atomic.Int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// Body.Close reads the rest only for the sake of what follows it: a further
// request, or trailers.
func TestBodyCloseReads(t *testing.T) {
	t.Parallel()
	const size = 50_000
	body := string(servertest.Pattern(size))
	alikeInMemory(t, func(t *testing.T, e chert.Engine) {
		closed := make(chan int64, 1)
		var conn *counting
		ts, m := engines.StartMemory(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/some" {
				if _, err := io.ReadFull(r.Body, make([]byte, 100)); err != nil {
					t.Error(err)
				}
			}
			before := conn.n.Load()
			if err := r.Body.Close(); err != nil {
				t.Error(err)
			}
			closed <- conn.n.Load() - before
			if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose && r.ContentLength != 0 {
				t.Errorf("Read gave %d, %v", n, err)
			}
			fmt.Fprint(w, "answer ", r.Trailer)
		})})
		_ = ts
		length := fmt.Sprintf("Content-Length: %d\r\n", size)
		const coded = "Transfer-Encoding: chunked\r\nTrailer: T\r\n"
		pieces := strings.TrimSuffix(servertest.Chunks(body, 1000), "\r\n") + "T: t\r\n\r\n"
		for _, tt := range []struct {
			path, lines, body string
			all               bool // of the body is read
			want              string
		}{
			{"/", "Connection: close\r\n" + length, body, false, "answer map[]"},
			{"/some", "Connection: close\r\n" + length, body, false, "answer map[]"},
			{"/", length, body, true, "answer map[]"},
			{"/", "Connection: close\r\n" + coded, pieces, true, "answer map[T:[t]]"},
			{"/", coded, pieces, true, "answer map[T:[t]]"},
		} {
			client, server := net.Pipe()
			client.SetDeadline(time.Now().Add(servertest.Patience))
			conn = &counting{Conn: server}
			select {
			case m.Conns <- conn:
			case <-time.After(servertest.Patience):
				t.Fatal("no connection is accepted")
			}
			c := servertest.Wrap(t, client)
			c.Send("POST " + tt.path + " HTTP/1.1\r\nHost: h\r\n" + tt.lines + "\r\n")
			c.SendAside(tt.body)
			n := servertest.Await(t, closed, "Close")
			if tt.all && n != int64(len(tt.body)) || !tt.all && n != 0 {
				t.Errorf("%s %q: Close read %d bytes of %d", tt.path, tt.lines, n, len(tt.body))
			}
			res, got := c.Response("POST")
			if got != tt.want {
				t.Errorf("%s %q: got %q", tt.path, tt.lines, got)
			}
			if res.Close {
				// What is read from here on depends on the client: a server reads on while its answer waits.
				c.Ended()
			} else {
				c.SendAside("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
				servertest.Await(t, closed, "the next handler")
				c.Response("POST")
			}
			c.Close()
		}
	})
}

// A handler may move the read deadline while another goroutine reads the body.
func TestReadDeadlineMoves(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		moved := make(chan bool)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			late, read := make(chan bool), make(chan bool)
			go func() {
				defer close(read)
				for {
					if _, err := r.Body.Read(make([]byte, 1)); !servertest.IsTimeout(err) {
						return
					}
					late <- true
				}
			}()
			for range 20 {
				if err := rc.SetReadDeadline(time.Unix(1, 0)); err != nil {
					t.Error(err)
				}
				servertest.Await(t, late, "the Read")
			}
			if err := rc.SetReadDeadline(time.Time{}); err != nil {
				t.Error(err)
			}
			moved <- true
			for {
				select {
				case <-late:
					continue
				case <-read:
				}
				break
			}
			put(w, "answer")
		})})
		c := ts.Dial()
		c.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n")
		servertest.Await(t, moved, "the handler")
		c.Send("x")
		if _, body := c.Response("POST"); body != "answer" {
			t.Errorf("got %q", body)
		}
	})
}

// An expired read deadline makes a chunked body unusable; one with a length can
// be read on under a later deadline. Either way the request's context is
// cancelled: a failed read counts as the client's end.
func TestReadDeadlineInBody(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		failed, more := make(chan struct{}), make(chan struct{})
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			chunked := r.ContentLength < 0
			rc := http.NewResponseController(w)
			b := make([]byte, 100)
			if n, err := io.ReadFull(r.Body, b[:5]); err != nil {
				t.Errorf("the first Read gave %d, %v", n, err)
			}
			if err := rc.SetReadDeadline(time.Unix(1, 0)); err != nil {
				t.Error(err)
			}
			for range 2 {
				if n, err := r.Body.Read(b); n != 0 || !servertest.IsTimeout(err) {
					t.Errorf("Read gave %d, %v", n, err)
				}
			}
			servertest.WaitDone(t, r.Context(), "the context is done")
			if err := r.Context().Err(); err != context.Canceled {
				t.Errorf("Err is %v", err)
			}
			if err := rc.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
			failed <- struct{}{}
			<-more
			n, err := io.ReadFull(r.Body, b[:5])
			if chunked && (n != 0 || !servertest.IsTimeout(err)) || !chunked && (err != nil || string(b[:n]) != "world") {
				t.Errorf("after the deadline, chunked=%v: %q, %v", chunked, b[:n], err)
			}
			put(w, "answer")
		})})
		for _, tt := range []struct{ lines, first, second string }{
			{"Content-Length: 10\r\n", "hello", "world"},
			{"Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n", "5\r\nworld\r\n0\r\n\r\n"},
			{"Transfer-Encoding: chunked\r\n", "a\r\nhello", "world\r\n0\r\n\r\n"},
			{"Transfer-Encoding: chunked\r\n", "5\r\nhello", "\r\n5\r\nworld\r\n0\r\n\r\n"},
		} {
			c := ts.Dial()
			c.Send("POST / HTTP/1.1\r\nHost: h\r\n" + tt.lines + "\r\n" + tt.first)
			servertest.Await(t, failed, "the Read")
			c.Send(tt.second)
			more <- struct{}{}
			if res, body := c.Response("POST"); body != "answer" || res.StatusCode != 200 {
				t.Errorf("%q: got %v %q", tt.lines, res.Status, body)
			}
			c.Close()
		}
	})
}

// A goroutine that still reads the body when its handler returns gets an error, and loses nothing of the connection.
func TestReadAfterHandler(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ended := make(chan error, 1)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			begun := make(chan bool)
			go func() {
				io.ReadFull(r.Body, make([]byte, 5))
				close(begun)
				_, err := r.Body.Read(make([]byte, 5))
				ended <- err
			}()
			<-begun
			runtime.Gosched() // in most rounds it reads
		})})
		c := ts.Dial()
		for range 20 {
			for _, in := range [][2]string{
				{"Content-Length: 10\r\n\r\nhello", "world"},
				{"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "5\r\nworld\r\n0\r\n\r\n"},
			} {
				c.Send("POST / HTTP/1.1\r\nHost: h\r\n" + in[0])
				if err := servertest.Await(t, ended, "the Read"); err != http.ErrBodyReadAfterClose {
					t.Error(err)
				}
				c.Send(in[1])
				if res, _ := c.Response("POST"); res.StatusCode != 200 || res.Close {
					t.Error(res.Status, res.Close)
				}
			}
		}
	})
}
