package static_test

import (
	"embed"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"testing/fstest"

	"github.com/chert-http/chert/static"
)

func ExampleNew() {
	h, err := static.New("public", &static.Options{
		SPA:       "index.html",
		Immutable: true,
		Rules: []static.Rule{
			{Match: "**", Header: map[string]string{"X-Content-Type-Options": "nosniff"}},
			{Match: "*.html", Header: map[string]string{"Cache-Control": "no-cache"}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	http.Handle("/", h)
}

//go:embed *.go
var assets embed.FS

func ExampleNewFS() {
	sub, err := fs.Sub(assets, ".")
	if err != nil {
		log.Fatal(err)
	}
	h, err := static.NewFS(sub, nil)
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/assets/", http.StripPrefix("/assets", h))
}

// Files have validators, ranges and HEAD as RFC 9110 has them.
func Example() {
	h, err := static.NewFS(fstest.MapFS{"hello.txt": {Data: []byte("hello, chert\n")}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	for _, rng := range []string{"", "bytes=0-4", "bytes=100-"} {
		r := httptest.NewRequest("GET", "/hello.txt", nil)
		if rng != "" {
			r.Header.Set("Range", rng)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Printf("%d %q %q\n", w.Code, w.Header().Get("Content-Range"), w.Body)
	}
	// Output:
	// 200 "" "hello, chert\n"
	// 206 "bytes 0-4/13" "hello"
	// 416 "bytes */13" "Requested Range Not Satisfiable\n"
}
