package filter_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/filter"
)

// Middleware that restricts a part of a site to one network works around any
// handler, and keeps the fast path of direct ones.
func ExampleNew() {
	forbidden := direct.NewResponse(http.StatusForbidden, nil, []byte("not from here\n"))
	internal := filter.New(func(c *filter.Call) filter.Outcome {
		if !bytes.HasPrefix(c.Path(), []byte("/internal/")) {
			return filter.Pass
		}
		if c.RemoteAddr() != "192.0.2.1:1234" {
			return c.Refuse(forbidden)
		}
		c.SetHeader("Cache-Control", "no-store")
		return filter.Pass
	})
	h := internal(direct.HandlerFunc(func(x *direct.Exchange) {
		x.WriteString("hello\n")
	}))

	for _, from := range []string{"192.0.2.1:1234", "198.51.100.7:80"} {
		r := httptest.NewRequest("GET", "/internal/metrics", nil)
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Print(w.Code, " ", w.Body)
	}
	_, fast := h.(direct.Handler)
	fmt.Println("fast path:", fast)
	// Output:
	// 200 hello
	// 403 not from here
	// fast path: true
}

// A decision that has to wait is made on the ordinary path.
func ExampleOnPlain() {
	known := func(c *filter.Call) bool { return c.HasHeader("X-Key") } // asks a database
	h := filter.New(func(c *filter.Call) filter.Outcome {
		if c.Direct() {
			return filter.OnPlain
		}
		if !known(c) {
			return c.Refuse(direct.NewResponse(http.StatusUnauthorized, nil, []byte("who is there?\n")))
		}
		return filter.Pass
	})(http.NotFoundHandler())

	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output: 401 who is there?
}

func ExampleAround() {
	active := 0
	h := filter.Around(func(c *filter.Call, next filter.Next) filter.Outcome {
		active++
		defer func() { active-- }()
		return next.Serve(c)
	})(direct.HandlerFunc(func(x *direct.Exchange) { fmt.Fprintln(x, active, "active") }))

	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Print(w.Body)
	// Output: 1 active
}
