// Command chi serves a chi router with chert.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/chert-http/chert"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	srv := &chert.Server{Handler: middleware.Logger(handler())}
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/\n", l.Addr())
	if err := chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) }); err != nil {
		log.Fatal(err)
	}
}

type article struct {
	Title string `json:"title"`
	Words int    `json:"words"`
}

func handler() http.Handler {
	r := chi.NewRouter()
	r.Use(middleware.RequestID, middleware.Recoverer)
	r.Get("/", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello\n") })
	r.Get("/panic", func(http.ResponseWriter, *http.Request) { panic("on purpose") })
	r.Route("/articles", func(r chi.Router) {
		r.Post("/", create)
		r.Get("/{id:[0-9]+}", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "article %s\n", chi.URLParam(r, "id"))
		})
	})
	r.Group(func(r chi.Router) {
		r.Use(middleware.BasicAuth("admin", map[string]string{"admin": "secret"}))
		r.Get("/admin", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "welcome\n") })
	})
	r.With(middleware.Compress(5)).Get("/text", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for i := range 1000 {
			fmt.Fprintf(w, "line %d\n", i)
		}
	})
	r.Post("/upload", upload)
	r.Get("/files/*", http.StripPrefix("/files/", http.FileServer(http.Dir("."))).ServeHTTP)
	return r
}

func create(w http.ResponseWriter, r *http.Request) {
	var a article
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&a); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	json.NewEncoder(w).Encode(a)
}

// upload responds with each file's name, size and hash without storing it.
func upload(w http.ResponseWriter, r *http.Request) {
	parts, err := r.MultipartReader()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for {
		p, err := parts.NextPart()
		if err == io.EOF {
			return
		}
		h := sha256.New()
		var n int64
		if err == nil {
			n, err = io.Copy(h, p)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "%s %d %x\n", p.FileName(), n, h.Sum(nil))
	}
}
