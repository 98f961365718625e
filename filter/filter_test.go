package filter_test

import (
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/testing/race"
	"github.com/chert-http/chert/internal/user"
)

type key struct{}

var refused = direct.NewResponse(403, http.Header{"X-Refused": {"1"}}, []byte("no\n"))

// hello writes the values that filters have set.
var hello = direct.HandlerFunc(func(x *direct.Exchange) {
	fmt.Fprintf(x, "%s %s %v %s", x.Method(), x.RemoteAddr(), x.Value(key{}), user.Of(x))
})

// answers returns the responses of h to a request on the plain and on the
// fast path.
func answers(t *testing.T, h http.Handler, r *http.Request) (plain, directly string) {
	t.Helper()
	line := func(status int, header http.Header, body []byte) string {
		header.Del("Content-Length")
		return fmt.Sprintf("%d %v %s", status, header, body)
	}
	var x direct.Exchange
	x.Wire().Reset(wire.Request{
		Method: r.Method, Target: []byte(r.RequestURI), Path: []byte(r.URL.Path), RawQuery: []byte(r.URL.RawQuery), Host: []byte(r.Host),
		RemoteAddr: r.RemoteAddr, Fields: wire.FieldsOf(r.Header),
	})
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	plain = line(rec.Code, rec.Header(), rec.Body.Bytes())
	if d, ok := h.(direct.Handler); !ok {
		directly = "not direct"
	} else if !d.ServeDirect(&x) {
		if directly = "later"; x.RemoteAddr() != "192.0.2.1:1234" {
			t.Errorf("later, and the address is %s", x.RemoteAddr())
		}
	} else {
		a := x.Wire().Finish()
		header := http.Header{}
		for _, f := range a.Fields {
			header[f.Name] = append(header[f.Name], f.Value)
		}
		directly = line(a.Status, header, a.Body)
	}
	return plain, directly
}

// A filter has the same effect on both ways.
func TestBothWays(t *testing.T) {
	t.Parallel()
	name := "ann"
	const text = "Content-Type:[text/plain; charset=utf-8]"
	for _, tt := range []struct {
		name   string
		decide func(c *filter.Call) filter.Outcome
		want   string
	}{
		{"pass", func(c *filter.Call) filter.Outcome { return filter.Pass }, "200 map[" + text + "] GET 192.0.2.1:1234 <nil> "},
		{"value, user, address", func(c *filter.Call) filter.Outcome {
			c.SetValue(key{}, "a")
			c.SetValue(key{}, "b")
			c.SetUser(&name)
			c.SetRemoteAddr("198.51.100.7:0")
			if c.Value(key{}) != "b" || user.Of(c) != "ann" || c.RemoteAddr() != "198.51.100.7:0" {
				t.Error("the filter does not see what it has set")
			}
			return filter.Pass
		}, "200 map[" + text + "] GET 198.51.100.7:0 b ann"},
		{"headers", func(c *filter.Call) filter.Outcome {
			c.SetHeader("x-set", "1")
			c.SetHeader("X-Set", "2")
			c.AddHeader("X-Add", "1")
			c.AddHeader("x-add", "2")
			return filter.Pass
		}, "200 map[" + text + " X-Add:[1 2] X-Set:[2]] GET 192.0.2.1:1234 <nil> "},
		{"refuse", func(c *filter.Call) filter.Outcome {
			c.SetHeader("X-Refused", "0")
			c.SetHeader("X-Kept", "1")
			return c.Refuse(refused)
		}, "403 map[" + text + " X-Kept:[1] X-Refused:[1]] no\n"},
		{"answer", func(c *filter.Call) filter.Outcome {
			c.AddHeader("Vary", "A")
			return c.Respond(func(x *direct.Exchange) {
				x.AddHeader("Vary", "B")
				x.SetStatus(202)
				x.WriteString("here")
			})
		}, "202 map[" + text + " Vary:[A B]] here"},
		{"what it sees", func(c *filter.Call) filter.Outcome {
			return c.Respond(func(x *direct.Exchange) {
				first, n := c.Fields().First("x-a")
				fmt.Fprintf(x, "%s %s %s %s %s %d %v %s %d", c.Method(), c.Path(), c.RawQuery(), c.Host(), first, n, c.HasHeader("X-B"), c.RequestHeader("X-A"), c.BodyLength())
			})
		}, "200 map[" + text + "] GET /a b example.com 1 2 false 1 0"},
	} {
		for _, kind := range []string{"New", "New and New", "Around", "Around that serves"} {
			var wrap func(http.Handler) http.Handler
			switch pass := filter.New(func(*filter.Call) filter.Outcome { return filter.Pass }); kind {
			case "New":
				wrap = filter.New(tt.decide)
			case "New and New":
				wrap = func(h http.Handler) http.Handler { return pass(filter.New(tt.decide)(pass(h))) }
			case "Around":
				wrap = filter.Around(func(c *filter.Call, _ filter.Next) filter.Outcome { return tt.decide(c) })
			default:
				wrap = filter.Around(func(c *filter.Call, next filter.Next) filter.Outcome {
					if o := tt.decide(c); o != filter.Pass {
						return o
					}
					return next.Serve(c)
				})
			}
			r := httptest.NewRequest("GET", "/a?b", nil)
			r.Header["X-A"] = []string{"1", "2"}
			if plain, directly := answers(t, wrap(hello), r); plain != tt.want || directly != tt.want {
				t.Errorf("%s, %s:\nplain  %s\ndirect %s\nwant   %s", tt.name, kind, plain, directly, tt.want)
			}
			// A plain inner handler sees the same.
			r = httptest.NewRequest("GET", "/a?b", nil)
			r.Header["X-A"] = []string{"1", "2"}
			if plain, directly := answers(t, wrap(http.HandlerFunc(hello.ServeHTTP)), r); plain != tt.want || directly != "not direct" {
				t.Errorf("%s, %s, plain handler:\nplain  %s\ndirect %s\nwant   %s", tt.name, kind, plain, directly, tt.want)
			}
		}
	}
}

// A decision that is postponed is made on the ordinary path; the fast path leaves
// the address as it was.
func TestLater(t *testing.T) {
	t.Parallel()
	later := func(c *filter.Call) filter.Outcome {
		c.SetRemoteAddr("198.51.100.7:0")
		if c.Direct() {
			return filter.OnPlain
		}
		return filter.Pass
	}
	leaves := plainOnly{hello}
	for name, h := range map[string]http.Handler{
		"New":     filter.New(later)(hello),
		"Around":  filter.Around(func(c *filter.Call, next filter.Next) filter.Outcome { return later(c) })(hello),
		"handler": filter.New(func(c *filter.Call) filter.Outcome { c.SetRemoteAddr("198.51.100.7:0"); return filter.Pass })(leaves),
		"Around, inner": filter.Around(func(c *filter.Call, next filter.Next) filter.Outcome {
			c.SetRemoteAddr("198.51.100.7:0")
			return next.Serve(c)
		})(leaves),
		"Around that passes": filter.Around(func(c *filter.Call, _ filter.Next) filter.Outcome {
			c.SetRemoteAddr("198.51.100.7:0")
			return filter.Pass
		})(leaves),
	} {
		plain, directly := answers(t, h, httptest.NewRequest("GET", "/", nil))
		if plain != "200 map[Content-Type:[text/plain; charset=utf-8]] GET 198.51.100.7:0 <nil> " || directly != "later" {
			t.Errorf("%s: %s, %s", name, plain, directly)
		}
	}
}

// A filter sees the request that one outside has put in place, also beside it.
func TestSetPlain(t *testing.T) {
	t.Parallel()
	replace := filter.New(func(c *filter.Call) filter.Outcome {
		if w, r := c.Plain(); r != nil {
			r = r.Clone(r.Context())
			r.Method, r.URL.Path, r.RemoteAddr = "PUT", "/new", "198.51.100.7:0"
			r.Header.Set("X-New", "1")
			c.SetPlain(w, r)
		}
		return filter.Pass
	})
	pass := filter.Around(func(*filter.Call, filter.Next) filter.Outcome { return filter.Pass })
	for name, between := range map[string]func(http.Handler) http.Handler{
		"side by side": func(h http.Handler) http.Handler { return h }, "apart": pass,
	} {
		var saw string
		see := filter.New(func(c *filter.Call) filter.Outcome {
			saw = fmt.Sprintf("%s %s %s %s", c.Method(), c.Path(), c.RemoteAddr(), c.RequestHeader("X-New"))
			return filter.Pass
		})
		replace(between(see(hello))).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		if want := "PUT /new 198.51.100.7:0 1"; saw != want {
			t.Errorf("%s: the filter inside saw %s, want %s", name, saw, want)
		}
	}
}

// plainOnly leaves all to the ordinary path.
type plainOnly struct{ direct.Handler }

func (plainOnly) ServeDirect(*direct.Exchange) bool { return false }

// A filter that does not decide on the ordinary path fails closed.
func TestUndecided(t *testing.T) {
	t.Parallel()
	for _, o := range []filter.Outcome{0, filter.OnPlain, 77} {
		for _, h := range []http.Handler{
			filter.New(func(*filter.Call) filter.Outcome { return o })(hello),
			filter.Around(func(*filter.Call, filter.Next) filter.Outcome { return o })(hello),
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%d: no panic", o)
					}
				}()
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			}()
			if h.(direct.Handler).ServeDirect(new(direct.Exchange)) {
				t.Errorf("%d: answered", o)
			}
		}
	}
}

// Filters run from the outermost; inner ones do not see what an outer one
// refuses.
func TestOrder(t *testing.T) {
	t.Parallel()
	var ran []int
	step := func(i int) func(http.Handler) http.Handler {
		return filter.New(func(c *filter.Call) filter.Outcome {
			if ran = append(ran, i); i == 3 && c.HasHeader("Refuse") {
				return c.Refuse(refused)
			}
			return filter.Pass
		})
	}
	h := step(1)(step(2)(filter.Around(func(c *filter.Call, next filter.Next) filter.Outcome {
		ran = append(ran, -1)
		defer func() { ran = append(ran, -2) }()
		return next.Serve(c)
	})(step(3)(step(4)(hello)))))
	for refuse, want := range map[bool][]int{false: {1, 2, -1, 3, 4, -2}, true: {1, 2, -1, 3, -2}} {
		r := httptest.NewRequest("GET", "/", nil)
		if refuse {
			r.Header.Set("Refuse", "1")
		}
		ran = nil
		answers(t, h, r)
		if !slices.Equal(ran, append(slices.Clip(want), want...)) {
			t.Errorf("refuse %v: %v", refuse, ran)
		}
	}
}

// The context has the values that filters outside have set, also beside.
func TestContext(t *testing.T) {
	t.Parallel()
	set := filter.New(func(c *filter.Call) filter.Outcome { c.SetValue(key{}, "a"); return filter.Pass })
	pass := filter.Around(func(*filter.Call, filter.Next) filter.Outcome { return filter.Pass })
	for name, between := range map[string]func(http.Handler) http.Handler{
		"side by side": func(h http.Handler) http.Handler { return h }, "apart": pass,
	} {
		var saw [3]any
		see := filter.New(func(c *filter.Call) filter.Outcome {
			saw[0], saw[1] = c.Context().Value(key{}), c.Value(key{})
			c.SetValue(key{}, "b")
			saw[2] = c.Context().Value(key{})
			return filter.Pass
		})
		r := httptest.NewRequest("GET", "/", nil)
		if set(between(see(hello))).ServeHTTP(httptest.NewRecorder(), r); saw != [3]any{"a", "a", "b"} {
			t.Errorf("%s: the filter inside saw %v", name, saw)
		}
	}
}

// What a filter sets after another has asked for the context reaches who is outside, also if a filter responds or panics.
func TestAddressPassesOut(t *testing.T) {
	t.Parallel()
	for _, panics := range []bool{false, true} {
		asks := filter.New(func(c *filter.Call) filter.Outcome {
			c.SetValue(key{}, 1)
			c.Context()
			return filter.Pass
		})
		ip := filter.New(func(c *filter.Call) filter.Outcome {
			c.SetRemoteAddr("192.0.2.9:1")
			return filter.Pass
		})
		ends := filter.New(func(c *filter.Call) filter.Outcome {
			if panics {
				panic(http.ErrAbortHandler)
			}
			return c.Refuse(direct.NewResponse(http.StatusForbidden, nil, nil))
		})
		r := httptest.NewRequest("GET", "/", nil)
		func() {
			defer func() { recover() }()
			asks(ip(ends(http.NotFoundHandler()))).ServeHTTP(httptest.NewRecorder(), r)
		}()
		if r.RemoteAddr != "192.0.2.9:1" {
			t.Errorf("panics %v: %s", panics, r.RemoteAddr)
		}
	}
}

// The pattern that an inner router finds is visible outside, and so is a form, also after a
// panic.
func TestPattern(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	form := new(multipart.Form)
	mux.HandleFunc("/{x}", func(w http.ResponseWriter, r *http.Request) {
		r.MultipartForm = form
		if r.URL.Path == "/panic" {
			panic(http.ErrAbortHandler)
		}
	})
	set := func(c *filter.Call) filter.Outcome { c.SetValue(key{}, 1); return filter.Pass }
	for _, h := range []http.Handler{
		filter.New(set)(mux),
		filter.Around(func(c *filter.Call, next filter.Next) filter.Outcome { set(c); return next.Serve(c) })(mux),
	} {
		for _, path := range []string{"/a", "/panic"} {
			r := httptest.NewRequest("GET", path, nil)
			func() {
				defer func() { recover() }()
				h.ServeHTTP(httptest.NewRecorder(), r)
			}()
			if r.Pattern != "/{x}" || r.MultipartForm != form {
				t.Errorf("%s: pattern %q, form %v", path, r.Pattern, r.MultipartForm)
			}
		}
	}
}

func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	name := "ann"
	set := func(c *filter.Call) filter.Outcome {
		c.SetHeader("X-A", "1")
		c.AddHeader("X-A", "1")
		c.SetUser(&name)
		c.SetRemoteAddr("198.51.100.7:0")
		return filter.Pass
	}
	around := filter.Around(func(c *filter.Call, next filter.Next) filter.Outcome { return next.Serve(c) })
	h := filter.New(set)(around(filter.New(set)(direct.NewResponse(200, nil, nil)))).(direct.Handler)
	var x direct.Exchange
	if n := testing.AllocsPerRun(100, func() {
		x.Wire().Reset(wire.Request{Method: "GET", Fields: wire.FieldsOf(nil)})
		h.ServeDirect(&x)
		x.Wire().Finish()
	}); n != 0 {
		t.Errorf("direct: %v allocations", n)
	}
	pass := filter.New(func(*filter.Call) filter.Outcome { return filter.Pass })
	p := pass(around(pass(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))))
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	if n := testing.AllocsPerRun(100, func() { p.ServeHTTP(w, r) }); n != 0 {
		t.Errorf("plain: %v allocations", n)
	}
}
