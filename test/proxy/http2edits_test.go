package proxy

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/middleware"
)

// TestEditsHTTP2: what middleware makes of the fields of a response is the same over HTTP/2 and over HTTP/1.
func TestEditsHTTP2(t *testing.T) {
	edit, err := middleware.Headers(&middleware.HeadersOptions{Rules: []middleware.HeaderRule{
		{Set: map[string]string{"X-Set": "1", "Server": "mine"}, Add: map[string][]string{"Vary": {"Cookie"}, "Set-Cookie": {"c=3"}},
			Remove: []string{"X-Gone"}},
		{Status: []int{4}, Set: map[string]string{"X-Failed": "1"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	const fields = "Date: Mon, 02 Jan 2006 15:04:05 GMT\r\nServer: theirs\r\nX-Gone: 1\r\nX-Kept:  a b \r\n" +
		"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nVary: Accept\r\nContent-Type: text/plain\r\n"
	h1 := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, status := range []string{"200 OK", "404 Not Found"} {
		t.Run(status, func(t *testing.T) {
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				o := start(t, each("HTTP/1.1 "+status+"\r\n"+fields+"Content-Length: 2\r\n\r\nok"))
				ts := http2Server(t, e, edit((&setup{}).handler(t, o.addr())))
				var got [2]string
				for i, c := range []*http.Client{h1, h2c(t)} {
					res, err := c.Get("http://" + ts.ListenAddr + "/")
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(res.Body)
					res.Body.Close()
					got[i] = fmt.Sprint(res.StatusCode, res.ContentLength, res.Header, string(body), err)
				}
				if got[0] != got[1] {
					t.Errorf("HTTP/1: %s\nHTTP/2: %s", got[0], got[1])
				}
			})
		})
	}
}
