package middleware

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/chert-http/chert/direct"
)

// routed is a direct handler that does as a router does: both ways set the
// pattern.
type routed struct{}

func (routed) ServeDirect(x *direct.Exchange) bool {
	x.Wire().SetPattern("GET /users/{id}")
	x.WriteString("hello")
	return true
}

func (routed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Pattern = "GET /users/{id}"
	io.WriteString(w, "hello")
}

// LogText and LogJSON have the pattern, the host and the id of a request, with any
// middleware of this package between the log and the router.
func TestAccessLogPattern(t *testing.T) {
	t.Parallel()
	id := RequestID(&RequestIDOptions{New: func() string { return "id-7" }})
	for name, mw := range everything(t) {
		for _, tt := range []struct {
			format LogFormat
			want   []string
		}{
			{LogText, []string{` pattern="GET /users/{id}"`, " host=example.com ", " request_id=id-7"}},
			{LogJSON, []string{`"pattern":"GET /users/{id}"`, `"host":"example.com"`, `"request_id":"id-7"`}},
		} {
			for _, way := range []string{"plain", "direct", "mux", "panic"} {
				var out bytes.Buffer
				l := newTestLog(AccessLogOptions{Format: tt.format, Output: &out})
				mux := http.NewServeMux()
				mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
					if way == "panic" {
						panic(http.ErrAbortHandler)
					}
				})
				r := request("GET", "/users/17", "", "Authorization", "Bearer token")
				if way != "direct" {
					r = request("GET", "/users/17", "body", "Authorization", "Bearer token")
				}
				inside := func(h http.Handler) http.Handler { return Chain(h, l.Wrap, id, mw) }
				switch way {
				case "plain":
					plain(inside(routed{}), r)
				case "direct":
					directly(t, inside(routed{}), r)
				default:
					panics(func() { plain(inside(mux), r) })
				}
				l.Close()
				for _, want := range tt.want {
					if (name == "requestid" || name == "all") && strings.Contains(want, "id-7") {
						continue // its format differs
					}
					if !strings.Contains(out.String(), want) {
						t.Errorf("%s, %s: no %s in %s", name, way, want, out.String())
					}
				}
			}
		}
	}
}

// All formats escape what a terminal may act on, and JSON still means the same.
func TestAccessLogPrintable(t *testing.T) {
	t.Parallel()
	bad := "\u009b2J \u0085 \u2028 \u2029 \u202e \u2066 \u200b \ufeff \x7f \U000e0041 \x1b"
	good := "zoë 你好 \u0645\u0631\u062d\u0628\u0627 \U0001F980 \u00e9 \ufffd \"quoted\" \\"
	r := request("GET", "/", "", "User-Agent", bad+good, "Referer", "a\xffb")
	for _, format := range []LogFormat{LogCombined, LogVhostCombined, LogText, LogJSON} {
		for _, way := range []string{"plain", "direct"} {
			var out bytes.Buffer
			l := newTestLog(AccessLogOptions{Format: format, Output: &out})
			if way == "plain" {
				plain(l.Wrap(hello), r)
			} else {
				directly(t, l.Wrap(hello), r)
			}
			l.Close()
			line := strings.TrimSuffix(out.String(), "\n")
			for _, c := range line {
				if !unicode.IsPrint(c) {
					t.Errorf("%d, %s: %U in %q", format, way, c, line)
				}
			}
			if format != LogJSON {
				continue
			}
			var got struct {
				Agent   string `json:"user_agent"`
				Referer string
			}
			if err := json.Unmarshal([]byte(line), &got); err != nil || got.Agent != bad+good || got.Referer != "a\ufffdb" {
				t.Errorf("%s: %v, got %q, %q", way, err, got.Agent, got.Referer)
			}
			if !strings.Contains(line, "你好") {
				t.Errorf("what can be printed is escaped: %s", line)
			}
		}
	}
}

// The characters that are escaped are those that strconv.Quote escapes.
func FuzzPrintable(f *testing.F) {
	f.Add("a\u009b\U000e0041\xff")
	f.Fuzz(func(t *testing.T, s string) {
		var out bytes.Buffer
		slog.New(slog.NewJSONHandler(printable{&out}, nil)).Info("m", "s", s)
		var got struct{ S string }
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.S != strings.ToValidUTF8(s, "\ufffd") && got.S != fmt.Sprint(string([]rune(s))) {
			t.Errorf("%v: %q became %q", err, s, got.S)
		}
		for _, c := range strings.TrimSuffix(out.String(), "\n") {
			if !unicode.IsPrint(c) {
				t.Errorf("%U in %q", c, out.String())
			}
		}
	})
}

// Lines are written at once only to terminals.
func TestIsTerminal(t *testing.T) {
	t.Parallel()
	for _, w := range []io.Writer{new(bytes.Buffer), openDevNull(t), io.Discard} {
		if isTerminal(w) {
			t.Errorf("%T is taken for a terminal", w)
		}
	}
}

func openDevNull(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
