package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/router"
	"github.com/chert-http/chert/static"
)

// app is the endpoints.
type app struct {
	handler http.Handler
	items   []item
	db      *database // nil without one
	files   *static.Handler
}

func newApp(ctx context.Context, s settings) (*app, error) {
	a := &app{}
	if err := a.load(s.dataset); err != nil {
		return nil, err
	}
	if s.database != "" {
		var err error
		if a.db, err = openDatabase(ctx, s.database, s.connections); err != nil {
			return nil, err
		}
	}
	ws, err := echo()
	if err != nil {
		return nil, err
	}
	r := router.New()
	r.HandleFunc("GET /baseline11", sum)
	r.HandleFunc("POST /baseline11", sum)
	r.HandleFunc("GET /baseline2", sum)
	r.HandleFunc("GET /pipeline", func(w http.ResponseWriter, _ *http.Request) { text(w, "ok") })
	r.HandleFunc("POST /upload", upload)
	r.HandleFunc("GET /async-db", a.prices)
	r.HandleFunc("GET /crud/items", a.list)
	r.HandleFunc("GET /crud/items/{id}", a.read)
	r.HandleFunc("POST /crud/items", a.create)
	r.HandleFunc("PUT /crud/items/{id}", a.update)
	r.Handle("GET /ws", ws)
	// Only the codings that the profile counts.
	compress, err := middleware.Compress(&middleware.CompressOptions{Codings: []string{"br", "gzip"}})
	if err != nil {
		return nil, err
	}
	r.Handle("GET /json/{count}", compress(http.HandlerFunc(a.json)))
	if _, err := os.Stat(s.files); err == nil {
		// The rules of the class: files are read from the disk for every request, and nothing is kept.
		a.files, err = static.New(s.files, &static.Options{CacheBytes: -1, CacheFileSize: -1, OpenFiles: -1})
		if err != nil {
			return nil, err
		}
		r.Handle("GET /static/{path...}", http.StripPrefix("/static", a.files))
	}
	a.handler = r
	return a, nil
}

func (a *app) close() {
	if a.db != nil {
		a.db.pool.Close()
	}
	if a.files != nil {
		a.files.Close()
	}
}

// item is one of the dataset's.
type item struct {
	ID       int      `json:"id"`
	Name     string   `json:"name"`
	Category string   `json:"category"`
	Price    int      `json:"price"`
	Quantity int      `json:"quantity"`
	Active   bool     `json:"active"`
	Tags     []string `json:"tags"`
	Rating   rating   `json:"rating"`
}

type rating struct {
	Score int `json:"score"`
	Count int `json:"count"`
}

// load reads the dataset. Without one, /json has no items: not every profile mounts it.
func (a *app) load(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &a.items); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

type totalled struct {
	item
	Total int `json:"total"`
}

// json answers with the first items, each with its total, made anew for each request.
func (a *app) json(w http.ResponseWriter, r *http.Request) {
	count, err := strconv.Atoi(r.PathValue("count"))
	if err != nil || count < 0 {
		http.Error(w, "count is not a number", http.StatusBadRequest)
		return
	}
	m, err := number(r, "m", 1)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	items := make([]totalled, min(count, len(a.items)))
	for i := range items {
		items[i] = totalled{a.items[i], a.items[i].Price * a.items[i].Quantity * m}
	}
	answer(w, http.StatusOK, struct {
		Items []totalled `json:"items"`
		Count int        `json:"count"`
	}{items, len(items)})
}

// sum adds the values of the query and the body.
func sum(w http.ResponseWriter, r *http.Request) {
	var total int
	for _, values := range r.URL.Query() {
		for _, v := range values {
			n, err := strconv.Atoi(v)
			if err != nil {
				http.Error(w, "the query has something else than numbers", http.StatusBadRequest)
				return
			}
			total += n
		}
	}
	const most = 64
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if s := strings.TrimSpace(string(body)); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			http.Error(w, "the body is not a number", http.StatusBadRequest)
			return
		}
		total += n
	}
	text(w, strconv.Itoa(total))
}

// upload counts the bytes of the body by reading them.
func upload(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text(w, strconv.FormatInt(n, 10))
}

// number is a value of the query.
func number(r *http.Request, name string, otherwise int) (int, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return 0, fmt.Errorf("%s is not a number", name)
	}
	return n, nil
}

func text(w http.ResponseWriter, s string) {
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, s)
}

func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(b)
}
