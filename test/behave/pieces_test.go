package behave

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Reads, and calls of ReadFrom's sources, have the sizes that they have with
// net/http.

// readsOf sends a body, and when it has been sent lets the handler read with a
// buffer of the given size. It returns how much each Read returned.
func readsOf(t *testing.T, s *chert.Server, fields []string, wire string, size int) (sizes []int, body string) {
	t.Helper()
	entered, sent := make(chan bool, 1), make(chan bool)
	s.Handler = hf(func(w http.ResponseWriter, r *http.Request) {
		entered <- true
		if r.Header.Get("Expect") == "" {
			<-sent
		}
		b, p := new(strings.Builder), make([]byte, size)
		for {
			n, err := r.Body.Read(p)
			sizes = append(sizes, n)
			b.Write(p[:n])
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Error(err)
				break
			}
		}
		body = fmt.Sprint(b, r.Trailer)
	})
	ts := engines.Start(t, s)
	c := ts.Dial()
	c.Send(ask("POST /", fields...))
	servertest.Await(t, entered, "the handler")
	if slices.Contains(fields, "Expect: 100-continue") {
		c.Want("HTTP/1.1 100 Continue\r\n\r\n")
		c.Send(wire)
	} else {
		c.Send(wire)
		close(sent)
	}
	c.Response("POST")
	return sizes, body
}

func TestPiecesOfBodies(t *testing.T) {
	t.Parallel()
	text := string(servertest.Pattern(60_000))
	chunked := []string{"Transfer-Encoding: chunked"}
	for _, tt := range []struct {
		name   string
		fields []string
		wire   string
	}{
		{"a length", []string{"Content-Length: 60000"}, text},
		{"one chunk", chunked, servertest.Chunks(text, 60_000)},
		{"chunks as io.Copy makes them", chunked, servertest.Chunks(text, 32<<10)},
		{"chunks of a page", chunked, servertest.Chunks(text, 4<<10)},
		{"small chunks", chunked, servertest.Chunks(text, 100)},
		{"chunks of a byte", chunked, servertest.Chunks(text[:10_000], 1)},
		{"extensions", chunked, strings.ReplaceAll(servertest.Chunks(text, 1000), "3e8\r\n", "3e8;a=\"b;c\" ; d\r\n")},
		{"a trailer", chunked, strings.TrimSuffix(servertest.Chunks(text, 1000), "\r\n") + "X-Sum: 1\r\n\r\n"},
		{"100 (Continue)", append(slices.Clone(chunked), "Expect: 100-continue"), servertest.Chunks(text, 32<<10)},
	} {
		for _, size := range []int{500, 4 << 10, 32 << 10, 1 << 20} {
			t.Run(fmt.Sprint(tt.name, " into ", size), func(t *testing.T) {
				want, wantBody := readsOf(t, &chert.Server{Engine: engines.NetHTTP}, tt.fields, tt.wire, size)
				engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
					// How much has arrived depends on the system too.
					var got []int
					for range 5 {
						var body string
						if got, body = readsOf(t, fresh(), tt.fields, tt.wire, size); body != wantBody {
							t.Fatalf("got %s\nwant %s", servertest.Brief(body), servertest.Brief(wantBody))
						}
						// Into a small buffer net/http reads on until that is
						// full, even if it has to wait; here a piece of what
						// was read at once may be smaller.
						if most := len(want) + 2 + len(want)/6; len(got) <= most || engines.Layered {
							return
						}
					}
					t.Errorf("Reads gave %v, net/http's %v", got, want)
				})
			})
		}
	}
}

// What follows a body is neither lost nor part of it, however that is read.
func TestPiecesPipelined(t *testing.T) {
	h := hf(func(w http.ResponseWriter, r *http.Request) {
		var size int
		fmt.Sscan(r.URL.Query().Get("size"), &size)
		p, b := make([]byte, size), new(strings.Builder)
		for {
			n, err := r.Body.Read(p)
			b.Write(p[:n])
			// The unused part of a buffer may have been written to, and has no
			// meaning.
			clear(p)
			if err != nil {
				fmt.Fprintf(w, "%s %s %d %v %v %d", r.Method, r.URL, b.Len(), r.Trailer, err, sum([]byte(b.String())))
				return
			}
		}
	})
	var scripts []string
	for _, size := range []int{1, 100, 4095, 4096, 5000, 32 << 10, 200_000} {
		path := fmt.Sprint("/?size=", size)
		for _, wire := range []string{
			"0\r\n\r\n", "1\r\nx\r\n0\r\n\r\n", "5;a=b;c=\"d\"\r\nhello\r\n0\r\n\r\n", "5;a\r\nhello\r\n0;b=c\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n",
			servertest.Chunks(servertest.Smuggled, 3), servertest.Chunks(servertest.Smuggled, 1000), servertest.Chunks(string(servertest.Pattern(70_000)), 1), servertest.Chunks(string(servertest.Pattern(20_000)), 7), servertest.Chunks(string(servertest.Pattern(100_000)), 4091),
			servertest.Chunks(string(servertest.Pattern(300_000)), 65536), strings.TrimSuffix(servertest.Chunks(string(servertest.Pattern(9000)), 4096), "\r\n") + "X-Sum: " + strings.Repeat("long", 1000) + "\r\n\r\n",
		} {
			scripts = append(scripts, postChunks(path, wire))
		}
		scripts = append(scripts, post(path, "length"), post(path, string(servertest.Pattern(5000))), ask("GET "+path))
	}
	oracles := engines.Start(t, &chert.Server{Engine: engines.NetHTTP, Handler: h})
	want := make([]string, len(scripts))
	for i, s := range scripts {
		want[i] = directTalk(oracles, s, 1<<30)
	}
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		s := fresh()
		s.Handler = h
		ts := engines.Start(t, s)
		all, answers := strings.Join(scripts, ""), strings.Join(want, "")
		for _, piece := range []int{1 << 30, 30_011, 4097, 1013} {
			if got := directTalk(ts, all, piece); got != answers {
				t.Errorf("in pieces of %d: got %s\nwant %s", piece, servertest.Brief(got), servertest.Brief(answers))
			}
		}
		for i, s := range scripts {
			if len(s) < 400 {
				if got := directTalk(ts, s+scripts[0], 1); got != want[i]+want[0] {
					t.Errorf("byte by byte: got %s\nwant %s", servertest.Brief(got), servertest.Brief(want[i]+want[0]))
				}
			}
		}
	})
}

// A client that does not send its body costs no buffer if the handler has one
// of its own, and a small one otherwise; nor do pipelined bytes cost more than
// what is kept of them.
func TestPiecesMemory(t *testing.T) {
	for _, e := range []chert.Engine{chert.EngineLoops, chert.EngineGoroutines} {
		for size, most := range map[int]int64{100: 1, 32 << 10: 0} {
			const connections = 20
			before := buf.Live()
			waiting := make(chan bool, connections)
			ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				p := make([]byte, size)
				io.ReadFull(r.Body, p[:5])
				waiting <- true
				r.Body.Read(p)
			})})
			var all []*servertest.Client
			for range connections {
				c := ts.Dial()
				c.Send(postChunks("/", "5\r\nhello\r\n7fffffffffffffff\r\n"))
				servertest.Await(t, waiting, "a handler")
				all = append(all, c)
			}
			servertest.Eventually(t, fmt.Sprintf("waiting with room for %d costs at most %d buffers", size, most), func() bool { return buf.Live()-before <= most*connections })
			for _, c := range all {
				c.Close()
			}
			ts.Close()
			servertest.Eventually(t, "no buffer is left", func() bool { return buf.Live() == before })
		}
	}
}

// A hijacker's buffers are as large.
func TestPiecesHijacked(t *testing.T) {
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		sizes := make(chan string, 1)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			nc, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			sizes <- fmt.Sprint(rw.Reader.Size(), rw.Writer.Size())
		})})
		ts.Dial().Send(ask("GET /"))
		if got := servertest.Await(t, sizes, "the handler"); got != "4096 4096" {
			t.Errorf("sizes %s", got)
		}
	})
}

// sizedReader records how much is requested of it.
type sizedReader struct {
	asked []int
	left  int
}

func (r *sizedReader) Read(p []byte) (int, error) {
	r.asked = append(r.asked, len(p))
	n := min(len(p), r.left)
	if r.left -= n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// io.Copy to a response reads its source in pieces of the same size.
func TestPiecesOfSources(t *testing.T) {
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		for _, fields := range []http.Header{{}, {"Content-Length": {"100000"}}, {"Content-Type": {"text/plain"}}} {
			asked := make(chan []int, 1)
			ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				for name, values := range fields {
					w.Header()[name] = values
				}
				src := &sizedReader{left: 100_000}
				if n, err := io.Copy(w, src); n != 100_000 || err != nil {
					t.Error(n, err)
				}
				asked <- src.asked
			})})
			c := ts.Dial()
			c.Send(ask("GET /"))
			if _, body := c.Response("GET"); len(body) != 100_000 {
				t.Errorf("%d bytes", len(body))
			}
			if got, want := servertest.Await(t, asked, "the handler"), []int{512, 32768, 32768, 32768, 32768, 32768}; !slices.Equal(got, want) {
				t.Errorf("%v: asked for %v, want %v", fields, got, want)
			}
		}
	})
}
