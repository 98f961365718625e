package routers

import (
	_ "embed"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/julienschmidt/httprouter"
	"github.com/labstack/echo/v4"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/router"
)

//go:embed github.txt
var github string

// A route is a method, a path in net/http's syntax, and its wildcards.
type route struct {
	method, path string
	names        []string
}

func routes() (all []route) {
	for line := range strings.Lines(github) {
		f := strings.Fields(line)
		var names []string
		for seg := range strings.SplitSeq(f[0], "/") {
			if strings.HasPrefix(seg, "{") {
				names = append(names, strings.Trim(seg, "{}"))
			}
		}
		for _, m := range f[1:] {
			all = append(all, route{m, f[0], names})
		}
	}
	return all
}

// colon is the path as most routers write it.
func (r route) colon() string {
	return strings.NewReplacer("{", ":", "}", "").Replace(r.path)
}

// sink keeps what handlers read.
var sink int

// prepare makes what is measured of a request.
type prepare func(r *http.Request) func()

// contenders make routers of all routes. Their handlers read all values.
var contenders = []struct {
	name string
	make func([]route) prepare
}{
	{"chert", func(rs []route) prepare {
		m := router.New()
		for _, r := range rs {
			m.HandleDirect(r.method+" "+r.path, func(x *direct.Exchange) {
				for _, n := range r.names {
					sink += len(x.PathValue(n))
				}
			})
		}
		return func(r *http.Request) func() {
			x := new(direct.Exchange)
			target := []byte(r.RequestURI)
			x.Wire().Reset(wire.Request{Method: r.Method, Target: target, Path: target, Host: []byte(r.Host)})
			return func() {
				if !m.ServeDirect(x) {
					panic("not answered")
				}
			}
		}
	}},
	{"chert-plain", func(rs []route) prepare {
		m := router.New()
		for _, r := range rs {
			m.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) {
				for _, n := range r.names {
					sink += len(req.PathValue(n))
				}
			})
		}
		return func(r *http.Request) func() {
			var c http.Request
			return func() {
				c = *r // with the map of the last time it would cost nothing
				m.ServeHTTP(w, &c)
			}
		}
	}},
	{"servemux", func(rs []route) prepare {
		m := http.NewServeMux()
		for _, r := range rs {
			m.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) {
				for _, n := range r.names {
					sink += len(req.PathValue(n))
				}
			})
		}
		return handler(m)
	}},
	{"chi", func(rs []route) prepare {
		m := chi.NewRouter()
		for _, r := range rs {
			m.MethodFunc(r.method, r.path, func(w http.ResponseWriter, req *http.Request) {
				for _, n := range r.names {
					sink += len(chi.URLParam(req, n))
				}
			})
		}
		return handler(m)
	}},
	{"gin", func(rs []route) prepare {
		gin.SetMode(gin.ReleaseMode)
		m := gin.New()
		for _, r := range rs {
			m.Handle(r.method, r.colon(), func(c *gin.Context) {
				for _, n := range r.names {
					sink += len(c.Param(n))
				}
			})
		}
		return handler(m)
	}},
	{"echo", func(rs []route) prepare {
		m := echo.New()
		m.Logger.SetOutput(io.Discard)
		for _, r := range rs {
			m.Add(r.method, r.colon(), func(c echo.Context) error {
				for _, n := range r.names {
					sink += len(c.Param(n))
				}
				return nil
			})
		}
		return handler(m)
	}},
	{"httprouter", func(rs []route) prepare {
		m := httprouter.New()
		for _, r := range rs {
			m.Handle(r.method, r.colon(), func(w http.ResponseWriter, req *http.Request, p httprouter.Params) {
				for _, n := range r.names {
					sink += len(p.ByName(n))
				}
			})
		}
		return handler(m)
	}},
}

func handler(h http.Handler) prepare {
	return func(r *http.Request) func() {
		return func() { h.ServeHTTP(w, r) }
	}
}

// w takes answers, of which there are none.
var w = writer{http.Header{}}

type writer struct{ h http.Header }

func (w writer) Header() http.Header         { return w.h }
func (w writer) Write(p []byte) (int, error) { return len(p), nil }
func (w writer) WriteHeader(int)             {}

// request is one that r matches: each wildcard stands for its name.
func (r route) request() *http.Request {
	return httptest.NewRequest(r.method, strings.NewReplacer("{", "", "}", "").Replace(r.path), nil)
}

func Benchmark(b *testing.B) {
	all := routes()
	pick := func(path string) []route {
		for _, r := range all {
			if r.method == "GET" && r.path == path {
				return []route{r}
			}
		}
		panic(path)
	}
	for _, set := range []struct {
		name   string
		routes []route
	}{
		{"static", pick("/user/repos")},
		{"one", pick("/users/{user}/repos")},
		{"three", pick("/repos/{owner}/{repo}/issues/{number}/comments")},
		{"all", all},
	} {
		for _, c := range contenders {
			b.Run(set.name+"/"+c.name, func(b *testing.B) {
				prep := c.make(all)
				var run []func()
				for _, r := range set.routes {
					run = append(run, prep(r.request()))
				}
				b.ReportAllocs()
				for b.Loop() {
					for _, f := range run {
						f()
					}
				}
			})
		}
	}
}

// All routers find the requested route, and its values.
func TestContenders(t *testing.T) {
	all := routes()
	if len(all) != 203 {
		t.Fatalf("%d routes", len(all))
	}
	for _, c := range contenders {
		prep := c.make(all)
		for _, r := range all {
			sink = 0
			prep(r.request())()
			if want := len(strings.Join(r.names, "")); sink != want {
				t.Errorf("%s: %s %s: values of %d bytes, not %d", c.name, r.method, r.path, sink, want)
			}
		}
	}
}
