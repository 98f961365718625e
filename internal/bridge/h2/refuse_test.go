package h2_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
)

// A request whose fields are too large has the page, if the client and a frame have room for
// it, and its head alone if it is HEAD.
func TestRefusalPage(t *testing.T) {
	t.Parallel()
	many := strings.Split(strings.Repeat("a: b\n", 130), "\n")[:130]
	page, large := "<p>the page", strings.Repeat("x", 16<<10+1)
	const own = "431 Request Header Fields Too Large"
	for name, tt := range map[string]struct {
		page, method string
		window       uint32
		length, body string
	}{
		"GET":             {page, "GET", 65535, "11", page},
		"POST":            {page, "POST", 65535, "11", page},
		"HEAD":            {page, "HEAD", 65535, "11", ""},
		"HEAD, large":     {large, "HEAD", 65535, "35", ""},
		"large":           {large, "GET", 65535, "35", own},
		"small window":    {page + strings.Repeat(" ", 30), "GET", 40, "35", own},
		"no window":       {page, "GET", 0, "0", ""},
		"no window, HEAD": {page, "HEAD", 0, "35", ""},
		"its own, HEAD":   {"", "HEAD", 65535, "35", ""},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, "oracle", func(t *testing.T, kind string) {
				s := &chert.Server{Handler: hf(hello), RefusalPage: func(status int) (string, []byte) {
					if status != 431 || tt.page == "" {
						return "", nil
					}
					return "text/x", []byte(tt.page)
				}}
				c := serve(t, kind, s).raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: tt.window})
				for id := uint32(1); id < 9; id += 2 {
					c.headers(id, true, with(with([]string{":method: " + tt.method}, get[1:]...), many...)...)
					c.send()
					a := c.read(id)
					if a.outcome() != "431" || a.field("content-length") != tt.length || a.body != tt.body {
						t.Fatalf("%+v", a)
					}
				}
			})
		})
	}
}

// A request has its own context also where its stream's memory was a refused one's.
func TestContextAfterRefusal(t *testing.T) {
	t.Parallel()
	many := strings.Split(strings.Repeat("a: b\n", 130), "\n")[:130]
	each(t, "oracle", func(t *testing.T, kind string) {
		c := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Context().Done() != nil)
		})}).raw()
		for id := uint32(1); id < 40; id += 4 {
			c.headers(id, false, with(get, many...)...)
			c.send()
			if a := c.read(id); a.outcome() != "431" {
				t.Fatalf("%+v", a)
			}
			c.fr.WriteData(id, true, nil)
			c.headers(id+2, true, get...)
			c.send()
			if a := c.read(id + 2); a.body != "true" {
				t.Fatalf("%+v", a)
			}
		}
	})
}
