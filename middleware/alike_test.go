package middleware

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
)

// Whatever is inside of what, the fast path and the ordinary one respond alike.
func TestPathsAlike(t *testing.T) {
	t.Parallel()
	pages := func(p map[int]*ErrorPage) func(http.Handler) http.Handler {
		return Must(ErrorPages(&ErrorPagesOptions{Pages: p}))
	}
	rules := func(r ...HeaderRule) func(http.Handler) http.Handler {
		return Must(Headers(&HeadersOptions{Rules: r}))
	}
	layers := map[string]func(http.Handler) http.Handler{
		"pages":     pages(testPages),
		"plain 404": pages(map[int]*ErrorPage{404: {Body: []byte("other")}, 5: nil}),
		"own":       OwnErrors,
		"set": Must(Headers(&HeadersOptions{Set: map[string]string{
			"X-Request-Id": "set", "Vary": "Set", "Content-Type": "text/set", "X-Kept": "", "Cache-Control": "max-age=1"}})),
		"remove, set, add": rules(HeaderRule{Remove: []string{"X-Kept", "Vary", "X-Status"},
			Set: map[string]string{"X-Kept": "set", "Vary": "A"}, Add: map[string][]string{"X-Status": {"1", "2"}, "X-Kept": {"added"}}}),
		"add": rules(HeaderRule{Add: map[string][]string{"X-Kept": {"added"}, "Vary": {"B"}, "Set-Cookie": {"c=d"}}}),
		"of errors": rules(HeaderRule{Status: []int{4, 503}, Set: map[string]string{"X-Error": "1", "Content-Type": "text/error"}},
			HeaderRule{Status: []int{4}, Remove: []string{"X-Error"}, Add: map[string][]string{"X-Kept": {"error"}}}),
		"set, then removed": rules(HeaderRule{Set: map[string]string{"X-Status": "s", "X-Kept": "s"}},
			HeaderRule{Remove: []string{"X-Status"}}, HeaderRule{Add: map[string][]string{"X-Status": {"last"}}}),
	}
	handlers := map[string]direct.Handler{}
	for _, status := range []int{200, 204, 301, 304, 401, 404, 405, 410, 416, 500, 503} {
		body := []byte("handler's")
		if status == 204 || status == 304 {
			body = nil
		}
		handlers[fmt.Sprint("ready ", status)] = direct.NewResponse(status, ofStatus(status), body)
		handlers[fmt.Sprint("bare ", status)] = direct.NewResponse(status, nil, nil)
		handlers[fmt.Sprint("written ", status)] = direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetStatus(status)
			for name, values := range ofStatus(status) {
				for _, v := range values {
					x.AddHeader(name, v)
				}
			}
			x.Write(body)
		})
	}
	kept := []http.Header{nil, {"X-Request-Id": {"id-1"}, "X-Kept": {"k"}, "Content-Type": {"text/kept"},
		"Vary": {"Kept"}, "Set-Cookie": {"a=b"}, "Cache-Control": {"private"}}}
	check := func(name string, h http.Handler, stack ...func(http.Handler) http.Handler) {
		for _, k := range kept {
			all := keeps{Chain(h, stack...), k}
			for _, method := range []string{"GET", "HEAD", "GET"} {
				want := plain(all, request(method, "/", "", "If-None-Match", `"x"`))
				if want.Status == 304 {
					want.Header.Del("Content-Type") // as servers do
				}
				got, ok := directly(t, all, request(method, "/", "", "If-None-Match", `"x"`))
				if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); !ok || g != w {
					t.Errorf("%s %s, kept %v:\nfast     %s\nordinary %s", method, name, k != nil, g, w)
				}
			}
		}
	}
	for handler, h := range handlers {
		for one, a := range layers {
			check(strings.Join([]string{one, handler}, " > "), h, a)
			for two, b := range layers {
				check(strings.Join([]string{one, two, handler}, " > "), h, a, b)
			}
		}
	}
}
