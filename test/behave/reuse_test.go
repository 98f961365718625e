package behave

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// reuseWays runs f with ReuseRequests on both engines and all placements.
func reuseWays(t *testing.T, f func(t *testing.T, fresh func() *chert.Server)) {
	t.Helper()
	engines.EachPlacement(t, func(t *testing.T, fresh func() *chert.Server) {
		f(t, func() *chert.Server {
			s := fresh()
			s.ReuseRequests = true
			return s
		})
	})
}

type reuseKey struct{}

// reuseMux responds with everything that a handler can find out about its
// request.
func reuseMux() http.Handler {
	mux := http.NewServeMux()
	tell := func(w http.ResponseWriter, r *http.Request) {
		if w.Header()["X-Set"] != nil || len(w.Header()) != 0 {
			fmt.Fprintf(w, "a header of before: %v", w.Header())
		}
		w.Header()["X-Set"] = []string{r.URL.Path}
		w.Header().Set("X-"+strings.Trim(r.PathValue("a"), "/"), "own")
		fmt.Fprintf(w, "%s %v form=%v,%v,%v a=%q rest=%q pattern=%q ctx=%v", requestNoteWithout(r), r.ContentLength, r.Form, r.PostForm, r.MultipartForm, r.PathValue("a"), r.PathValue("rest"), r.Pattern, r.Context().Value(reuseKey{}))
	}
	mux.HandleFunc("/plain", tell)
	mux.HandleFunc("/wild/{a}", tell)
	mux.HandleFunc("POST /wild/{a}/{rest...}", tell)
	mux.HandleFunc("/body", func(w http.ResponseWriter, r *http.Request) {
		tell(w, r)
		b, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, " body=%q %v trailer=%v", b, err, r.Trailer)
	})
	mux.HandleFunc("/form", func(w http.ResponseWriter, r *http.Request) {
		tell(w, r)
		err := r.ParseForm()
		fmt.Fprintf(w, " form=%v post=%v %v", r.Form, r.PostForm, err)
	})
	mux.HandleFunc("/multipart", func(w http.ResponseWriter, r *http.Request) {
		tell(w, r)
		err := r.ParseMultipartForm(100)
		fmt.Fprintf(w, " value=%q %v", r.FormValue("a"), err)
		for _, f := range r.MultipartForm.File["file"] {
			part, _ := f.Open()
			b, _ := io.ReadAll(part)
			part.Close()
			fmt.Fprintf(w, " file=%d %d", len(b), sum(b))
		}
	})
	mux.HandleFunc("/change", func(w http.ResponseWriter, r *http.Request) {
		tell(w, r)
		r.Header.Set("X-Changed", "1")
		r.Header["Host"] = []string{"x"}
		r.SetPathValue("a", "changed")
		r.URL.Path, r.Method, r.Host, r.RequestURI, r.Close = "/changed", "CHANGED", "changed", "changed", true
		r.Trailer = http.Header{"Changed": {"1"}}
		r.Form = map[string][]string{"changed": {"1"}}
		*r = *r.WithContext(context.WithValue(r.Context(), reuseKey{}, "changed"))
	})
	mux.HandleFunc("/replace", func(w http.ResponseWriter, r *http.Request) {
		tell(w, r)
		clear(r.Header)
		r.Header, r.Body = nil, nil
	})
	mux.HandleFunc("/trailer", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Trailer")
		put(w, "with a trailer")
		flush(w)
		w.Header().Set("X-Trailer", "1")
	})
	mux.HandleFunc("/unread", func(w http.ResponseWriter, r *http.Request) { put(w, "unread") })
	mux.HandleFunc("/some", func(w http.ResponseWriter, r *http.Request) {
		io.ReadFull(r.Body, make([]byte, 3))
		put(w, "some")
	})
	return mux
}

// requestNoteWithout is requestNote for requests in which only the values that
// a mux sets may differ.
func requestNoteWithout(r *http.Request) string {
	plain := r.Clone(r.Context())
	plain.Pattern = ""
	return servertest.RequestNote(plain)
}

// reuseScripts are requests of all sorts. Each has n in places.
func reuseScripts(n int) []string {
	own := fmt.Sprintf("X-Own: %d", n)
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf("X-Many-%d: %d", i, n))
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	w.SetBoundary("boundary")
	w.WriteField("a", fmt.Sprint("value", n))
	part, _ := w.CreateFormFile("file", "name")
	part.Write(servertest.Pattern(1000 + n))
	w.Close()
	return []string{
		ask("GET /plain", own), ask("GET /plain?" + fmt.Sprint(n)), ask("HEAD /plain"), ask("GET /wild/"+fmt.Sprint(n), own), post(fmt.Sprintf("/wild/%d/b/c", n), "x"),
		ask("GET /plain", many...), ask("GET /plain", append(slices.Clone(many), many...)...), ask("GET /plain", "X-Long: "+strings.Repeat("long", 3000+n)),
		post("/body", fmt.Sprint("body", n), own), postChunks("/body", fmt.Sprintf("5\r\nhello\r\n0\r\nX-Trailer: %d\r\n\r\n", n), "Trailer: X-Trailer"), post("/body", string(servertest.Pattern(5000+n))),
		post("/form?q=1", fmt.Sprintf("a=%d&b=c", n), "Content-Type: application/x-www-form-urlencoded"), ask(fmt.Sprintf("GET /form?x=%d", n)),
		post("/multipart", form.String(), "Content-Type: multipart/form-data; boundary=boundary"),
		ask("GET /change", own, "X-Change: 1"), ask("GET /replace", own), ask("GET /trailer"), ask("GET /nowhere/" + fmt.Sprint(n)),
		post("/unread", "unread"), post("/unread", string(servertest.Pattern(9000))), post("/some", "something"), postChunks("/some", servertest.Chunks("something", 2)),
		ask("GET /plain", "Cookie: a=b", "Cookie: c=d", "Accept: "+fmt.Sprint(n), own), ask("GET /plain", "Content-Length: 0"), ask("GET /%70lain?x"), ask("GET http://other/plain"), ask("OPTIONS *"),
		post("/body", fmt.Sprint("hello", n), "Expect: 100-continue"), ask("GET /plain", "Pragma: no-cache", "TE: trailers", "X-Empty:", "x_odd: 1"),
	}
}

// Whatever came before, a request is the same as with net/http.
func TestReuseAnswers(t *testing.T) {
	oracles := engines.Start(t, &chert.Server{Engine: engines.NetHTTP, Handler: reuseMux()})
	want := make(map[string]string)
	for n := range 4 {
		for _, s := range reuseScripts(n) {
			want[s] = directTalk(oracles, s, 1<<30)
		}
	}
	reuseWays(t, func(t *testing.T, fresh func() *chert.Server) {
		s := fresh()
		s.Handler = reuseMux()
		ts := engines.Start(t, s)
		peer := func(c *servertest.Client, s string) string {
			return strings.ReplaceAll(servertest.Undated(s), c.LocalAddr().String(), "CLIENT")
		}
		var all sync.WaitGroup
		for n := range 4 {
			all.Go(func() {
				c := ts.Dial() // one after the other on a connection
				for round := range 2 {
					scripts := reuseScripts(n)
					for i := range scripts {
						s := scripts[(i*7+round*5)%len(scripts)]
						c.SendSlowly(s, max(1, len(s)/(1+round*2)))
						if got := peer(c, exactly(c, len(want[s]))); got != want[s] {
							t.Errorf("to %s\ngot  %s\nwant %s", servertest.Brief(s), servertest.Brief(got), servertest.Brief(want[s]))
							return
						}
					}
				}
				// All at once on another.
				var script, answers strings.Builder
				for _, s := range reuseScripts(n) {
					script.WriteString(s)
					answers.WriteString(want[s])
				}
				if got := directTalk(ts, script.String(), 1<<30); got != answers.String() {
					t.Errorf("got  %s\nwant %s", servertest.Brief(got), servertest.Brief(answers.String()))
				}
			})
		}
		all.Wait()
		if log := ts.Log.String(); log != "" {
			t.Errorf("logged %s", servertest.Brief(log))
		}
	})
}

// exactly reads a response that has n bytes without its Date line.
func exactly(c *servertest.Client, n int) string {
	c.T.Helper()
	b := make([]byte, n+len("Date: Mon, 02 Jan 2006 15:04:05 GMT\r\n"))
	k, err := io.ReadFull(c.R, b)
	if err != nil {
		c.T.Errorf("after %q: %v", b[:k], err)
	}
	return string(b[:k])
}

// A context whose Done channel was requested does not change.
func TestReuseContexts(t *testing.T) {
	reuseWays(t, func(t *testing.T, fresh func() *chert.Server) {
		s := fresh()
		kept := make(chan context.Context, 1000)
		s.Handler = hf(func(w http.ResponseWriter, r *http.Request) {
			ctx := r.Context()
			switch r.URL.Path {
			case "/done":
				if ctx.Done(); ctx.Err() != nil {
					t.Error("the context is over before its request")
				}
				kept <- ctx
			case "/err":
				if ctx.Err() != nil {
					t.Error("the context is over before its request")
				}
				kept <- ctx
			case "/derived":
				child, cancel := context.WithCancel(ctx)
				context.AfterFunc(ctx, cancel)
				kept <- child
			case "/loose": // not retained; the next request reuses it
				ctx.Value(reuseKey{})
			}
			put(w, r.URL.Path)
		})
		ts := engines.Start(t, s)
		c := ts.Dial()
		var all []context.Context
		for range 20 {
			for _, path := range []string{"/done", "/loose", "/err", "/loose", "/derived"} {
				if _, body := c.Get(path); body != path {
					t.Errorf("got %q", body)
				}
			}
			for range 3 {
				all = append(all, servertest.Await(t, kept, "a context"))
			}
			for _, ctx := range all {
				servertest.WaitDone(t, ctx, "the context of an earlier request is over")
				if ctx.Err() != context.Canceled {
					t.Errorf("got %v", ctx.Err())
				}
			}
		}
	})
}

// A client that leaves ends its own context and no other's.
func TestReuseClientGone(t *testing.T) {
	reuseWays(t, func(t *testing.T, fresh func() *chert.Server) {
		s := fresh()
		running, over := make(chan struct{}), make(chan struct{})
		s.Handler = hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				return
			}
			done := r.Context().Done()
			running <- struct{}{}
			servertest.Await(t, done, "the context's end")
			over <- struct{}{}
		})
		ts := engines.Start(t, s)
		stays := ts.Dial()
		stays.Send(ask("GET /stays"))
		servertest.Await(t, running, "the handler")
		for _, leave := range leavings {
			c := ts.Dial()
			c.Get("/")
			c.Send(ask("GET /goes"))
			servertest.Await(t, running, "the handler")
			leave(c)
			servertest.Await(t, over, "the handler's end")
			ts.Dial().Get("/")
		}
		stays.Close()
		servertest.Await(t, over, "the handler's end")
	})
}

// State that a hijacker or a panic leaves is not visible to others.
func TestReuseHijackAndPanic(t *testing.T) {
	reuseWays(t, func(t *testing.T, fresh func() *chert.Server) {
		s := fresh()
		s.Handler = hf(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/panic":
				w.Header().Set("X-Panic", "1")
				panic(http.ErrAbortHandler)
			case "/hijack":
				w.Header().Set("X-Hijack", "1")
				nc, rw, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				own := r.Header.Get("X-Own")
				for {
					b, err := rw.ReadByte()
					if err != nil {
						nc.Close()
						return
					}
					if got := r.Header.Get("X-Own"); got != own || r.URL.Path != "/hijack" {
						t.Errorf("the hijacker's request has changed: %s, %s", got, r.URL.Path)
					}
					nc.Write([]byte{b})
				}
			}
			fmt.Fprint(w, w.Header()["X-Panic"], w.Header()["X-Hijack"], r.Header["X-Own"])
		})
		ts := engines.Start(t, s)
		var all []*servertest.Client
		for i := range 5 {
			h := ts.Dial()
			h.Send(ask("GET /hijack", fmt.Sprint("X-Own: ", i)))
			all = append(all, h)
			p := ts.Dial()
			p.Send(ask("GET /panic"))
			p.Ended()
			c := ts.Dial()
			for j := range 10 {
				if _, body := c.Get("/", fmt.Sprint("X-Own: other", j)); body != fmt.Sprintf("[] [] [other%d]", j) {
					t.Errorf("got %q", body)
				}
			}
			for _, h := range all {
				h.Send("x")
				h.Want("x")
			}
		}
	})
}

// A goroutine that outlives its handler gets errors, whatever the server does
// meanwhile.
func TestReuseLateReads(t *testing.T) {
	reuseWays(t, func(t *testing.T, fresh func() *chert.Server) {
		s := fresh()
		var late sync.WaitGroup
		var stopped sync.Map // by query: closed when a read was refused
		stop := func(query string) chan struct{} {
			ch, _ := stopped.LoadOrStore(query, make(chan struct{}))
			return ch.(chan struct{})
		}
		s.Handler = hf(func(w http.ResponseWriter, r *http.Request) {
			body, path, query := r.Body, r.URL.Path, strings.Clone(r.URL.RawQuery)
			if path == "/others" {
				io.Copy(w, body)
				return
			}
			reading := make(chan struct{})
			late.Go(func() {
				p := make([]byte, 1)
				body.Read(p)
				close(reading)
				for refused := 0; refused < 500; {
					n, err := body.Read(p)
					switch {
					case err == http.ErrBodyReadAfterClose:
						if refused++; refused == 1 {
							close(stop(query))
						}
					case n != 1 || p[0] != 'x' || refused > 0:
						t.Errorf("%s: %d %q %v after %d refusals", path, n, p, err, refused)
						if refused == 0 {
							close(stop(query))
						}
						return
					}
				}
			})
			<-reading
			switch path {
			case "/panic":
				panic(http.ErrAbortHandler)
			case "/hijack":
				nc, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				put(nc, "hijacked")
				nc.Close()
			}
		})
		ts := engines.Start(t, s)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for round := range 5 {
					path := []string{"/", "/expect", "/panic", "/hijack"}[(i+round)%4]
					c := ts.Dial()
					query := fmt.Sprint(i, "-", round)
					var fields []string
					if path == "/expect" {
						fields = []string{"Expect: 100-continue"}
					}
					if round%2 == 0 {
						c.Send(ask("POST "+path+"?"+query, append(fields, "Content-Length: 100")...) + "xxxx")
					} else {
						c.Send(postChunks(path+"?"+query, "1\r\nx\r\n20\r\nxxx", fields...))
					}
					others := ts.Dial()
					for range 20 {
						others.Send(post("/others", "others"))
						if _, body := others.Response("POST"); body != "others" {
							t.Errorf("got %q", body)
						}
					}
					// Before it, the client's end would be a read error.
					servertest.Await(t, stop(query), "a refused read")
					c.Close()
				}
			})
		}
		all.Wait()
		// Some handlers may not have begun yet, although their clients have
		// left.
		if err := ts.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		done := make(chan struct{})
		go func() { late.Wait(); close(done) }()
		servertest.Await(t, done, "the goroutines that were left")
	})
}
