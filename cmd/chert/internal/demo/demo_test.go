package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/chertest"
)

// patience ends what hangs. No test waits for it otherwise.
const patience = 60 * time.Second

func newDemo(t *testing.T) *Demo {
	t.Helper()
	d, err := New(Options{Logger: slog.New(slog.DiscardHandler), At: At{Host: "fallback:1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// everywhere runs a test on chert and on net/http.
func everywhere(t *testing.T, test func(t *testing.T, d *Demo, url string)) {
	t.Run("chert", func(t *testing.T) {
		t.Parallel()
		d := newDemo(t)
		s := chertest.NewServer(d.Handler)
		t.Cleanup(s.Close)
		test(t, d, s.URL)
	})
	t.Run("net/http", func(t *testing.T) {
		t.Parallel()
		d := newDemo(t)
		s := httptest.NewServer(d.Handler)
		t.Cleanup(s.Close)
		test(t, d, s.URL)
	})
}

// until waits for what must come.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("in vain: ", what)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *Demo, url string) {
		jwt, err := d.JWT()
		if err != nil {
			t.Fatal(err)
		}
		old, err := d.keys.issue(time.Now().Add(-2 * tokenLife))
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			method, path, auth, body string
			status                   int
			want                     string // in the body
		}{
			{"GET", "/users/1", d.Bearer(), "", 200, `"asked_by":"bearer"`},
			{"GET", "/users/1000", jwt, "", 200, `"asked_by":"jwt"`},
			{"HEAD", "/users/1", jwt, "", 200, ""},
			{"GET", "/users/1001", jwt, "", 404, "users 1 to 1000"},
			{"GET", "/users/x", jwt, "", 404, "users 1 to 1000"},
			{"GET", "/users/99999999999999999999", jwt, "", 404, "users 1 to 1000"},
			{"GET", "/users/1", old, "", 401, ""},                      // expired
			{"GET", "/users/1", jwt + "x", "", 401, ""},                // another signature
			{"GET", "/users/1", d.Bearer() + ".", "", 401, ""},         // neither kind
			{"GET", "/users/1", "", "", 401, ""},                       //
			{"POST", "/echo", "", "<b>", 200, "<b>"},                   //
			{"POST", "/echo", "", strings.Repeat("x", 65537), 413, ""}, // more than an exchange takes
			{"GET", "/clock?n=1", "", "", 200, "data: 2"},              //
			{"HEAD", "/clock", "", "", 200, ""},
			{"GET", "/clock?n=0", "", "", 400, ""},                         //
			{"GET", "/clock?n=99999999999999999999", "", "", 400, ""},      //
			{"PUT", "/upload", "", "abc", 200, `"bytes":3,`},               //
			{"POST", "/upload", "", "", 200, `"bytes":0,`},                 //
			{"GET", "/db", "", "", 200, `"rows"`},                          //
			{"GET", "/files/chert.txt", "", "", 200, "Flint is a form of"}, //
			{"GET", "/files/%2e%2e/demo.go", "", "", 404, ""},              // cleaned by the client
			{"GET", "/panic", "", "", 500, ""},                             //
		} {
			req, _ := http.NewRequest(tt.method, url+tt.path, strings.NewReader(tt.body))
			if tt.auth != "" {
				req.Header.Set("Authorization", "Bearer "+tt.auth)
			}
			req.Header.Set("Content-Type", "text/html") // echo does not repeat it
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != tt.status || err != nil || !strings.Contains(string(body), tt.want) {
				t.Errorf("%s %s: %d %q %v", tt.method, tt.path, res.StatusCode, body, err)
			}
			if got := res.Header.Get("Content-Type"); strings.Contains(got, "html") {
				t.Errorf("%s %s: %s", tt.method, tt.path, got)
			}
		}
	})
}

func TestClockEndsWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *Demo, url string) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		req, _ := http.NewRequestWithContext(ctx, "GET", url+"/clock", nil)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		line, err := bufio.NewReader(res.Body).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "data: ") || d.clocks.running.Load() != 1 {
			t.Fatalf("%q %v, %d clocks", line, err, d.clocks.running.Load())
		}
		leave()
		until(t, "the clock's end", func() bool { return d.clocks.running.Load() == 0 })
	})
}

// No byte of the body is sent, so the response cannot have waited for it.
func TestLargeUploadIsRefusedUnread(t *testing.T) {
	t.Parallel()
	for name, expect := range map[string]string{"announced": "", "expecting 100": "Expect: 100-continue\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everywhere(t, func(t *testing.T, d *Demo, url string) {
				c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(patience))
				fmt.Fprintf(c, "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%s\r\n", 100<<20, expect)
				res, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				if res.StatusCode != http.StatusRequestEntityTooLarge { // 100 Continue included
					t.Errorf("%s", res.Status)
				}
			})
		})
	}
}

// endless counts what is read of it.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.n += int64(len(p))
	return len(p), nil
}

// The length of a body that comes in chunks is not known before. It never ends, so it is refused in the middle.
func TestEndlessUploadIsCutOff(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *Demo, url string) {
		req, _ := http.NewRequest("PUT", url+"/upload", &endless{})
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s", res.Status)
		}
	})
}

func TestPage(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *Demo, url string) {
		res, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		page := string(b)
		// The policy names what the elements hold, byte for byte.
		policy := res.Header.Get("Content-Security-Policy")
		for _, element := range []string{"style", "script"} {
			m := regexp.MustCompile(`(?s)<` + element + `>(.*?)</` + element + `>`).FindStringSubmatch(page)
			if m == nil || !strings.Contains(policy, element+"-src "+hash([]byte(m[1]))+";") {
				t.Errorf("the policy does not name the %s of the page: %s", element, policy)
			}
		}
		for _, m := range regexp.MustCompile(`(?:src|href|action)="([^"]*)"|url\(|@import`).FindAllStringSubmatch(page, -1) {
			if m[1] != "data:," {
				t.Errorf("the page asks for %s", m[0])
			}
		}
		if got := res.Header.Get("Cache-Control"); got != "no-store, no-transform" || res.Header.Get("Content-Encoding") != "" {
			t.Errorf("a page with tokens is kept or compressed: %s", got)
		}
		if !strings.Contains(page, d.Bearer()) || !strings.Contains(page, "curl -i "+url+"/ping<") {
			t.Error("the page has no lines for this server")
		}
	})
}

// What a client calls the server gets into lines for shells.
func TestAtOfRequest(t *testing.T) {
	t.Parallel()
	own := At{Host: "own:1"}
	for host, want := range map[string]string{
		"a.example:80": "a.example:80", "A-b_c.example": "A-b_c.example", "127.0.0.1:8080": "127.0.0.1:8080",
		"[::1]:8080": "[::1]:8080", "[::1]": "[::1]",
		"": "own:1", "a\x11": "own:1", "[]": "own:1", "[::1": "own:1", ":80": "own:1", "a;b": "own:1", "a b": "own:1", "$(id)": "own:1", "`id`": "own:1", "a&b:80": "own:1",
		"'a'": "own:1", `"a"`: "own:1", "-o": "own:1", "a:b": "own:1", "a:99999": "own:1", "a/b": "own:1", "a@b": "own:1",
		"[a-z]:80": "own:1", "[1-9]": "own:1", "{a,b}": "own:1", "[fe80::1%eth0]:80": "own:1", strings.Repeat("a", 300): "own:1",
	} {
		if got := own.orOf(&http.Request{Host: host}); got.Host != want {
			t.Errorf("%q: %q, want %q", host, got.Host, want)
		}
	}
	socket := At{Socket: "/run/a"}
	if got := socket.orOf(&http.Request{Host: "a"}); got != socket {
		t.Errorf("%v", got)
	}
}
