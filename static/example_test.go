package static_test

import (
	"embed"
	"io/fs"
	"log"
	"net/http"

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
