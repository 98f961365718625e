package main

import (
	"go/format"
	"strings"
	"testing"
)

var testRewriter = rewriter{chert: "c/chert", onchert: "m/onchert", omit: map[string]string{"TestPush": "no HTTP/2"}}

// file makes a source of imports and declarations.
func file(imports, body string) string {
	return "package p\n\nimport (\n\t" + strings.ReplaceAll(imports, "; ", "\n\t") + "\n)\n\n" + body + "\n"
}

const (
	onlyOnchert = "package p\n\nimport \"m/onchert\"\n\n"
	onlyChert   = "package p\n\nimport \"c/chert\"\n\n"
	both        = "package p\n\nimport \"c/chert\"\nimport \"m/onchert\"\n\n"
)

func TestRewrite(t *testing.T) {
	for _, c := range []struct {
		why, in  string
		places   int
		out      string // after the package clause
		preamble string
	}{
		{"httptest's constructors; its recorder keeps the import",
			file(`"net/http/httptest"`, `var a, b, c, d = httptest.NewServer(h), httptest.NewTLSServer(h), httptest.NewUnstartedServer(h), httptest.NewRecorder()`), 3,
			file(`"net/http/httptest"`, `var a, b, c, d = onchert.NewServer(h), onchert.NewTLSServer(h), onchert.NewUnstartedServer(h), httptest.NewRecorder()`), onlyOnchert},
		{"an import that is not used any more",
			file(`"net/http"; "net/http/httptest"`, `func f(h http.Handler) *httptest.Server { return httptest.NewServer(h) }`), 2,
			file(`"net/http"; _ "net/http/httptest"`, `func f(h http.Handler) *onchert.Server { return onchert.NewServer(h) }`), onlyOnchert},
		{"an import with a name",
			file(`ht "net/http/httptest"`, `type s struct{ *ht.Server }`), 1,
			file(`_ "net/http/httptest"`, `type s struct{ *onchert.Server }`), onlyOnchert},
		{"a literal with fields",
			file(`"net/http"`, `var s = &http.Server{Handler: http.NotFoundHandler()}`), 1,
			file(`"net/http"`, `var s = &chert.Server{Engine: onchert.Engine(), Handler: http.NotFoundHandler()}`), both},
		{"a literal without",
			file(`"net/http"`, `var s = http.Server{}`), 1,
			file(`_ "net/http"`, `var s = chert.Server{Engine: onchert.Engine()}`), both},
		{"literals whose type is that of the slice",
			file(`"net/http"`, `var s = []*http.Server{{Addr: a}, {}, f()}`), 1,
			file(`_ "net/http"`, `var s = []*chert.Server{{Engine: onchert.Engine(), Addr: a}, {Engine: onchert.Engine()}, f()}`), both},
		{"new, as the receiver of a call",
			file(`"net/http"`, `var err = new(http.Server).ListenAndServe()`), 1,
			file(`_ "net/http"`, `var err = (&chert.Server{Engine: onchert.Engine()}).ListenAndServe()`), both},
		{"a variable of the type",
			file(`"net/http"`, `var s http.Server`), 1,
			file(`_ "net/http"`, `var s = chert.Server{Engine: onchert.Engine()}`), both},
		{"a pointer, a parameter",
			file(`"net/http"`, "var p *http.Server\n\nfunc f(*http.Server) {}"), 2,
			file(`_ "net/http"`, "var p *chert.Server\n\nfunc f(*chert.Server) {}"), onlyChert},
		{"functions; one of the same name that does not serve",
			file(`"net/http"`, "func f() {\n\thttp.Serve(l, h)\n\thttp.ServeTLS(l, h, c, k)\n\thttp.ListenAndServe(a, h)\n\thttp.ListenAndServeTLS(a, c, k, h)\n\thttp.ServeFile(w, r, n)\n}"), 4,
			file(`"net/http"`, "func f() {\n\tonchert.Serve(l, h)\n\tonchert.ServeTLS(l, h, c, k)\n\tonchert.ListenAndServe(a, h)\n\tonchert.ListenAndServeTLS(a, c, k, h)\n\thttp.ServeFile(w, r, n)\n}"), onlyOnchert},
		{"a dot import; keys, fields and parameters that have the name",
			file(`. "net/http"`, "var s = &Server{Handler: x{Server: NotFoundHandler()}.Server}\n\ntype x struct{ Server Handler }\n\nfunc f(Serve int) int { return Serve }"), 1,
			file(`. "net/http"`, "var s = &chert.Server{Engine: onchert.Engine(), Handler: x{Server: NotFoundHandler()}.Server}\n\ntype x struct{ Server Handler }\n\nfunc f(Serve int) int { return Serve }"), both},
		{"both kinds of import",
			file(`"net/http"; . "net/http"`, "var s, h = http.Server{}, NotFoundHandler()\n\nvar e = Serve(l, h)"), 2,
			file(`_ "net/http"; . "net/http"`, "var s, h = chert.Server{Engine: onchert.Engine()}, NotFoundHandler()\n\nvar e = onchert.Serve(l, h)"), both},
		{"an assertion beside something that is replaced",
			file(`"net/http"`, "var s *http.Server\n\nvar _ = ctx.Value(http.ServerContextKey).(*http.Server)"), 1,
			file(`"net/http"`, "var s *chert.Server\n\nvar _ = ctx.Value(http.ServerContextKey).(*http.Server)"), onlyChert},
		{"a type switch: what configures servers is of the new type, servers are of the old",
			file(`"net/http"`, "func f(x any) {\n\tswitch x := x.(type) {\n\tcase *http.Server:\n\tcase func(*http.Server):\n\t\tx(nil)\n\t}\n}"), 1,
			file(`"net/http"`, "func f(x any) {\n\tswitch x := x.(type) {\n\tcase *http.Server:\n\tcase func(*chert.Server):\n\t\tx(nil)\n\t}\n}"), onlyChert},
		{"the functions of TLSNextProto",
			file(`"net/http"`, "var s = http.Server{TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}"), 1,
			file(`"net/http"`, "var s = chert.Server{Engine: onchert.Engine(), TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}"), both},
		{"a test that is left out, its lines kept",
			file(`"net/http/httptest"`, "func TestPush(t *testing.T) {\n\tts := httptest.NewServer(nil)\n\tts.EnableHTTP2 = true\n}\n\nvar _ = 1"), 0,
			file(`_ "net/http/httptest"`, "func TestPush(t *testing.T) {\n\tt.Skip(\"no HTTP/2\")\n\n}\n\nvar _ = 1"), "package p\n\n"},
		{"nothing to replace",
			file(`"net/http"`, `var h = http.NotFoundHandler()`), 0, file(`"net/http"`, `var h = http.NotFoundHandler()`), "package p\n\n"},
		{"a variable that hides the package",
			file(`"net/http"`, "func f(http struct{ Server int }) int { return http.Server }\n\nvar h = http.NotFoundHandler()"), 0,
			file(`"net/http"`, "func f(http struct{ Server int }) int { return http.Server }\n\nvar h = http.NotFoundHandler()"), "package p\n\n"},
		{"another package of that name",
			file(`"example.org/http"`, `var s http.Server`), 0, file(`"example.org/http"`, `var s http.Server`), "package p\n\n"},
	} {
		out, places, err := testRewriter.rewrite("in.go", []byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		if places != c.places {
			t.Errorf("%s: %d places, want %d", c.why, places, c.places)
		}
		want := strings.Replace(c.out, "package p\n\n", c.preamble, 1)
		if got := formatted(t, out); got != formatted(t, []byte(want)) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.why, got, want)
		}
		if got, want := strings.Count(string(out), "\n"), strings.Count(c.in, "\n"); got != want {
			t.Errorf("%s: %d lines became %d", c.why, want, got)
		}
	}
}

func formatted(t *testing.T, text []byte) string {
	t.Helper()
	out, err := format.Source(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return string(out)
}

// What cannot be rewritten must not pass in silence.
func TestRewriteRefuses(t *testing.T) {
	for _, c := range []struct{ why, in string }{
		{"a syntax error", "package p; func"},
		{"two zero values at once", file(`"net/http"`, `var a, b http.Server`)},
		{"a field with a zero value", file(`"net/http"`, `type s struct { h http.Server }`)},
		{"a test without a name for its parameter", file(`"testing"`, `func TestPush(*testing.T) {}`)},
	} {
		if _, _, err := testRewriter.rewrite("in.go", []byte(c.in)); err == nil {
			t.Errorf("%s: no error", c.why)
		}
	}
}
