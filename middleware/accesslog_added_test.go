package middleware

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
)

// adding adds attributes to its line, on the fast path later.
type adding struct{}

func (adding) ServeDirect(x *direct.Exchange) bool {
	AddLogAttrsLater(x, func() []slog.Attr { return []slog.Attr{slog.String("first", "a b"), slog.Int("n", 7)} })
	x.WriteString("hello")
	return true
}

func (adding) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	AddLogAttrs(w, slog.String("first", "not this"))
	AddLogAttrs(w, slog.String("first", "a b"), slog.Int("n", 7))
	io.WriteString(w, "hello")
}

// Lines have what a handler adds, with any middleware of this package in between, if they are of the formats
// and have the fields for it.
func TestAddLogAttrs(t *testing.T) {
	t.Parallel()
	none, err := ParseLogFields("status")
	if err != nil {
		t.Fatal(err)
	}
	some, err := ParseLogFields("status", "added")
	if err != nil {
		t.Fatal(err)
	}
	for name, mw := range everything(t) {
		for _, way := range []string{"plain", "direct"} {
			for _, tt := range []struct {
				o    AccessLogOptions
				want string
			}{
				{AccessLogOptions{Format: LogText}, ` first="a b" n=7`},
				{AccessLogOptions{Format: LogJSON, Fields: some}, `"first":"a b","n":7}`},
				{AccessLogOptions{Format: LogJSON, Fields: none}, ""},
				{AccessLogOptions{Format: LogCombined}, ""},
			} {
				var out bytes.Buffer
				tt.o.Output = &out
				l := newTestLog(tt.o)
				h := Chain(adding{}, l.Wrap, mw)
				r := request("GET", "/x", "", "Authorization", "Bearer token")
				if way == "direct" {
					if _, ok := directly(t, h, r); !ok {
						continue // left to the ordinary path
					}
				} else {
					plain(h, r)
				}
				l.Flush()
				line := out.String()
				if refused := strings.Contains(line, `"status":4`) || strings.Contains(line, "status=4"); refused {
					continue // before the handler
				}
				if has := strings.Contains(line, "first"); has != (tt.want != "") || !strings.Contains(line, tt.want) {
					t.Errorf("%s, %s: %q, want %q", name, way, line, tt.want)
				}
			}
		}
	}
	AddLogAttrs(nil, slog.Int("n", 1)) // without a log, and without a writer
}
