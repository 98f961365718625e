package main

import (
	"io"
	"strings"
	"testing"
)

// The pages of the whole file are those of requests that are refused before they have a site, and
// a reload replaces them.
func TestRefusalPages(t *testing.T) {
	t.Parallel()
	needSignals(t)
	const text = "[[site]]\nhosts = 'a.example'\nroot = 'www'\n[site.errors]\n400 = 'site.html'\n[errors]\n"
	p, file := startConfig(t, text+"400 = 'one.html.tmpl'\n", map[string]string{
		"www/f": "f", "one.html.tmpl": "<p>{status} {text}", "two.html": "<p>two", "site.html": "<p>site",
	})
	get := func(request string) string {
		t.Helper()
		c := dial(t, p.urls[0])
		defer c.Close()
		io.WriteString(c, request)
		b, _ := io.ReadAll(c)
		_, body, _ := strings.Cut(string(b), "\r\n\r\n")
		return body
	}
	if got := get("GET / HTTP/1.1\r\n\r\n"); got != "<p>400 Bad Request" {
		t.Errorf("got %q", got)
	}
	if got := get("GET / HTTP/1.1\r\nHost: a.example\r\nA: " + strings.Repeat("a", 70<<10)); !strings.HasPrefix(got, "431 Request Header Fields Too Large") {
		t.Errorf("without a page: %q", got)
	}
	write(t, file, text+"'4xx' = 'two.html'\n")
	urls := p.urls
	p.reload()
	p.urls = urls
	for _, request := range []string{"GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a.example\r\nA: " + strings.Repeat("a", 70<<10)} {
		if got := get(request); got != "<p>two" {
			t.Errorf("after a reload: %q", got)
		}
	}
}
