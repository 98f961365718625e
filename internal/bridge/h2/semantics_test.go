package h2_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// show is all that a handler may see of a request, but what differs from one
// connection to the next.
func show(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s %d.%d host=%s uri=%s url=%s length=%d te=%v close=%v body=%d %v\n", r.Method, r.Proto, r.URL.Path,
		r.ProtoMajor, r.ProtoMinor, r.Host, r.RequestURI, r.URL, r.ContentLength, r.TransferEncoding, r.Close, len(body), err)
	for _, k := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(w, "%s: %q\n", k, r.Header[k])
	}
	for _, k := range slices.Sorted(maps.Keys(r.Trailer)) {
		fmt.Fprintf(w, "trailer %s: %q\n", k, r.Trailer[k])
	}
	_, hijacker := w.(http.Hijacker)
	_, flusher := w.(http.Flusher)
	_, pusher := w.(http.Pusher)
	_, notifier := w.(http.CloseNotifier) //lint:ignore SA1019 frameworks ask for it
	_, stringer := w.(io.StringWriter)
	_, _, err = http.NewResponseController(w).Hijack()
	fmt.Fprintln(w, hijacker, flusher, pusher, notifier, stringer, errors.Is(err, http.ErrNotSupported), r.Context().Err(), r.RemoteAddr != "")
}

var handlers = map[string]hf{
	"/show":  show,
	"/empty": func(w http.ResponseWriter, r *http.Request) {},
	"/status": func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "short and stout")
	},
	"/204": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-A", "b")
		w.WriteHeader(http.StatusNoContent)
		_, err := io.WriteString(w, "x")
		if err != http.ErrBodyNotAllowed {
			panic(err)
		}
	},
	"/304": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"a"`)
		w.WriteHeader(http.StatusNotModified)
	},
	"/length": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		io.WriteString(w, "12345")
	},
	"/fields": func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["lower"] = []string{"a"}
		h.Add("Set-Cookie", "a=b")
		h.Add("Set-Cookie", "c=d")
		h.Set("Content-Type", "x/y")
		h["Bad Name"] = []string{"x"}
		h.Set("Bad-Value", "a\r\nb: c")
		h.Set("Transfer-Encoding", "chunked")
		h["Date"] = nil
		io.WriteString(w, "body")
	},
	"/pieces": func(w http.ResponseWriter, r *http.Request) {
		for i := range 5 {
			fmt.Fprint(w, i)
			w.(http.Flusher).Flush()
		}
	},
	"/big": func(w http.ResponseWriter, r *http.Request) {
		for i := range 300 {
			w.Write([]byte(strings.Repeat(string(rune('a'+i%26)), 10_000)))
		}
	},
	"/whole": func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 3_000_000)) },
	"/trailers": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum, X-None, Content-Length")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "12")
		w.Header().Set(http.TrailerPrefix+"X-Late", "yes")
		w.Header().Set("X-Too-Late", "no")
	},
	"/trailers instead": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Field", "1")
		io.WriteString(w, "body")
		w.(http.Flusher).Flush()
		w.Header().Del("X-Field")
		w.Header().Set(http.TrailerPrefix+"X-Late", "yes")
	},
	"/trailers before": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(http.TrailerPrefix+"X-Early", "yes")
		w.Header().Set("X-Field", "1")
		io.WriteString(w, "body")
	},
	"/trailers alone": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Grpc-Status")
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		w.Header().Set("Grpc-Status", "0")
	},
	"/hints": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusProcessing)
		io.WriteString(w, "after")
	},
	"/echo":     func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) },
	"/unread":   func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "no, thank you") },
	"/redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/show", http.StatusFound) },
	"/error":    func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusBadGateway) },
	"/type":     func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html><body>") },
	"/coded": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "x")
		io.WriteString(w, "<html><body>")
	},
	"/superfluous": func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(201)
		w.WriteHeader(202)
	},
	"/copy": func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, strings.NewReader(strings.Repeat("z", 100_000)))
	},
	"/parse": func(w http.ResponseWriter, r *http.Request) {
		err := r.ParseForm()
		fmt.Fprint(w, r.Form.Encode(), err)
	},
}

func mux(w http.ResponseWriter, r *http.Request) {
	if h := handlers[r.URL.Path]; h != nil {
		h(w, r)
		return
	}
	http.NotFound(w, r)
}

// exchangeOf makes a request with net/http's client and shows its answer.
func exchangeOf(t *testing.T, c *http.Client, r *http.Request) string {
	t.Helper()
	res, err := c.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	var b strings.Builder
	if d := res.Header.Get("Date"); d != "" {
		if _, err := http.ParseTime(d); err != nil {
			t.Error(err)
		}
		res.Header.Set("Date", "now")
	}
	fmt.Fprintf(&b, "%s %s %d %v", res.Proto, res.Status, res.ContentLength, err)
	for _, k := range slices.Sorted(maps.Keys(res.Header)) {
		fmt.Fprintf(&b, " %s=%q", k, res.Header[k])
	}
	for _, k := range slices.Sorted(maps.Keys(res.Trailer)) {
		fmt.Fprintf(&b, " trailer %s=%q", k, res.Trailer[k])
	}
	if len(body) > 2000 {
		fmt.Fprintf(&b, " %d bytes", len(body))
		body = body[:100]
	}
	return b.String() + "\n" + string(body)
}

// The same client gets the same from chert as from net/http.
func TestAlike(t *testing.T) {
	t.Parallel()
	type request struct {
		method, path string
		body         func() io.Reader
		fields       []string
	}
	none := func() io.Reader { return nil }
	text := func(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }
	unknown := func(s string) func() io.Reader {
		return func() io.Reader { return io.MultiReader(strings.NewReader(s)) }
	}
	var all []request
	for p := range handlers {
		for _, m := range []string{"GET", "HEAD"} {
			all = append(all, request{m, strings.ReplaceAll(p, " ", "%20"), none, nil})
		}
	}
	all = append(all,
		request{"GET", "/show?a=b&c=d", none, []string{"X-A", "1", "Cookie", "a=b", "Cookie", "c=d", "Te", "trailers", "Accept", "a", "Accept", "b"}},
		request{"GET", "/sh%6fw?", none, []string{"Pragma", "no-cache", "Expect", "something"}},
		request{"POST", "/show", text("body"), []string{"Content-Type", "text/plain"}},
		request{"POST", "/show", unknown("body of unknown length"), nil},
		request{"PUT", "/show", unknown(""), nil},
		request{"POST", "/echo", text(strings.Repeat("e", 200_000)), nil},
		request{"POST", "/echo", unknown(strings.Repeat("e", 2_000_000)), nil},
		request{"POST", "/unread", text(strings.Repeat("e", 100)), nil},
		request{"POST", "/parse", text("a=b&c=d"), []string{"Content-Type", "application/x-www-form-urlencoded"}},
		request{"POST", "/show", text("with 100"), []string{"Expect", "100-continue"}},
		request{"OPTIONS", "/show", none, nil},
		request{"DELETE", "/nowhere", none, nil},
		request{"QUERY", "/show", text("x"), nil},
	)
	slices.SortFunc(all, func(a, b request) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	oracle := serve(t, "oracle", &chert.Server{Handler: hf(mux)})
	theirs := oracle.client()
	make1 := func(s *running, r request) *http.Request {
		req := must(http.NewRequest(r.method, s.url(r.path), r.body()))
		req.Host = "example.com"
		for i := 0; i < len(r.fields); i += 2 {
			req.Header.Add(r.fields[i], r.fields[i+1])
		}
		if strings.HasPrefix(r.path, "/show") && r.method == "POST" {
			req.Trailer = http.Header{"X-End": {"bye"}}
		}
		return req
	}
	var want []string
	for _, r := range all {
		want = append(want, exchangeOf(t, theirs, make1(oracle, r)))
	}
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(mux)})
		c := s.client()
		for round := range 3 { // handlers become quick meanwhile
			for i, r := range all {
				got, want := exchangeOf(t, c, make1(s, r)), want[i]
				if got != want {
					t.Errorf("round %d, %s %s:\n%s\nwant\n%s", round, r.method, r.path, got, want)
				}
			}
		}
	})
}

// What only chert promises of the request and the response.
func TestRequest(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if err := w.(http.Pusher).Push("/x", nil); err != http.ErrNotSupported {
				t.Errorf("Push: %v", err)
			}
			if (r.TLS != nil) != strings.HasPrefix(kind, "tls") || r.TLS != nil && r.TLS.NegotiatedProtocol != "h2" {
				t.Errorf("TLS is %+v", r.TLS)
			}
			w.WriteHeader(http.StatusSwitchingProtocols)
		})})
		c := s.client()
		res, err := c.Get(s.url("/"))
		if err != nil || res.StatusCode != 500 {
			t.Fatalf("%v, %v", res, err)
		}
		res.Body.Close()
	})
}

// The handler of HEAD may write as that of GET. net/http's WriteString returns io.ErrShortWrite beyond its 4 KiB.
func TestLongAnswerToHEAD(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if n, err := io.WriteString(w, strings.Repeat("x", 100_000)); n != 100_000 || err != nil {
				t.Errorf("WriteString: %d, %v", n, err)
			}
		})})
		c := s.raw()
		c.headers(1, true, append([]string{":method: HEAD"}, get[1:]...)...)
		c.send()
		if a := c.read(1); a.outcome() != "200" || a.body != "" {
			t.Errorf("got %+v", a)
		}
	})
}

func TestPanics(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/abort":
				panic(http.ErrAbortHandler)
			case "/panic":
				panic("on purpose")
			case "/late":
				io.WriteString(w, "begun")
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			case "/short":
				w.Header().Set("Content-Length", "10")
				io.WriteString(w, "short")
				if kind == "oracle" {
					panic(http.ErrAbortHandler) // it leaves it to the client to notice
				}
			}
		})})
		c := s.raw()
		for i, p := range []string{"/abort", "/panic", "/late", "/short"} {
			a := c.get(uint32(2*i+1), p)
			if a.reset != "INTERNAL_ERROR" || p == "/late" && a.body != "begun" {
				t.Errorf("%s: %+v", p, a)
			}
		}
		if a := c.get(11, "/"); a.outcome() != "200" {
			t.Errorf("then: %+v", a)
		}
		if n := strings.Count(s.log.String(), "http: panic serving"); n != 1 && kind != "oracle" {
			t.Errorf("%d panics are logged: %s", n, s.log)
		}
	})
}

// The context ends when the client resets the stream, when its connection ends, and
// when the handler has returned.
func TestContext(t *testing.T) {
	t.Parallel()
	each(t, "oracle inline", func(t *testing.T, kind string) {
		began, ended := make(chan context.Context, 1), make(chan error, 1)
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			began <- r.Context()
			if r.URL.Path == "/wait" {
				<-r.Context().Done()
				_, err := w.Write(make([]byte, 100_000))
				if err == nil {
					err = errors.New("a write succeeds")
				} else {
					err = r.Context().Err()
				}
				ended <- err
			}
			if r.URL.Path == "/read" {
				_, err := io.ReadAll(r.Body)
				if r.Context().Err() == nil {
					err = errors.New("the context goes on")
				}
				ended <- err
			}
		})})
		c := s.raw()
		c.headers(1, true, path(get, "/wait")...)
		c.send()
		servertest.Await(t, began, "the handler")
		c.fr.WriteRSTStream(1, 8)
		c.send()
		if err := servertest.Await(t, ended, "the end"); err != context.Canceled {
			t.Errorf("reset: %v", err)
		}
		c.headers(3, false, path(post, "/read")...)
		c.send()
		servertest.Await(t, began, "the handler")
		c.fr.WriteRSTStream(3, 8)
		c.send()
		if err := servertest.Await(t, ended, "the end"); err == nil || !strings.Contains(err.Error(), "CANCEL") {
			t.Errorf("reset while it reads: %v", err)
		}
		if a := c.get(5, "/"); a.outcome() != "200" {
			t.Errorf("%+v", a)
		}
		ctx := servertest.Await(t, began, "the handler")
		servertest.Await(t, ctx.Done(), "the end of the handler's context")
		c.headers(7, true, path(get, "/wait")...)
		c.headers(9, false, path(post, "/read")...)
		c.send()
		servertest.Await(t, began, "the handler")
		servertest.Await(t, began, "the handler")
		c.Conn.Close()
		servertest.Await(t, ended, "the end")
		servertest.Await(t, ended, "the end")
	})
}

// A handler reads and writes at the same time, and Flush sends what was written.
func TestFullDuplex(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			if err := rc.EnableFullDuplex(); err != nil && kind != "oracle" {
				t.Error(err)
			}
			rc.Flush()
			for in := bufio.NewScanner(r.Body); in.Scan(); {
				fmt.Fprintln(w, "got", in.Text())
				if err := rc.Flush(); err != nil {
					t.Error(err)
				}
			}
		})})
		pr, pw := io.Pipe()
		res, err := s.client().Do(must(http.NewRequest("POST", s.url("/"), pr)))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		in := bufio.NewReader(res.Body)
		for i := range 20 {
			fmt.Fprintln(pw, i)
			if line, err := in.ReadString('\n'); line != fmt.Sprintf("got %d\n", i) {
				t.Fatalf("%q, %v", line, err)
			}
		}
		pw.Close()
		if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
			t.Errorf("%q, %v", rest, err)
		}
	})
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		errs := make(chan error, 1)
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			past := time.Now().Add(-time.Second)
			var err error
			switch r.URL.Path {
			case "/read":
				rc.SetReadDeadline(past)
				_, err = r.Body.Read(make([]byte, 1))
			case "/read-soon":
				rc.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
				_, err = io.ReadAll(r.Body)
			case "/moved":
				done := make(chan bool)
				go func() {
					_, err = io.ReadAll(r.Body)
					close(done)
				}()
				rc.SetReadDeadline(past)
				<-done
			case "/write":
				rc.SetWriteDeadline(past)
				_, err = w.Write(make([]byte, 100_000))
			case "/write-soon":
				rc.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
				_, err = w.Write(make([]byte, 1_000_000))
			}
			if strings.HasPrefix(r.URL.Path, "/read") && r.Context().Err() != nil {
				t.Errorf("%s: the request's context: %v", r.URL.Path, r.Context().Err())
			}
			errs <- err
		})})
		c := s.raw()
		for i, p := range []string{"/read", "/read-soon", "/moved", "/write", "/write-soon"} {
			c.headers(uint32(2*i+1), false, path(post, p)...)
			c.send()
			var ne interface{ Timeout() bool }
			if err := servertest.Await(t, errs, p); !errors.As(err, &ne) || !ne.Timeout() {
				t.Errorf("%s: %v", p, err)
			}
		}
		if a := c.get(21, "/"); a.outcome() != "200" {
			t.Errorf("%+v", a)
		}
	})
}

// A Content-Length that is not digits alone, RFC 9110 section 8.6, is left out.
func TestInvalidContentLengthIsLeftOut(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		for _, v := range []string{"+3", "-3", "3 ", "0x3", "9223372036854775808"} {
			s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", v)
				io.WriteString(w, "abcd")
			})})
			if a := s.raw().get(1, "/"); a.outcome() != "200" || a.field("content-length") != "4" || a.body != "abcd" {
				t.Errorf("%q: %+v", v, a)
			}
		}
	})
}
