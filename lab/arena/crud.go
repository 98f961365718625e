package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/jackc/pgx/v5"
)

const (
	onPage  = "SELECT " + columns + " FROM items WHERE category = $1 ORDER BY id LIMIT $2 OFFSET $3"
	byID    = "SELECT " + columns + " FROM items WHERE id = $1"
	upserts = "INSERT INTO items (" + columns + ") VALUES ($1, $2, $3, $4, $5, true, '[]', 0, 0) " +
		"ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, category = EXCLUDED.category, price = EXCLUDED.price, quantity = EXCLUDED.quantity RETURNING " + columns
	updates = "UPDATE items SET name = $2, price = $3, quantity = $4 WHERE id = $1 RETURNING " + columns
)

// list answers with a page of a category.
func (a *app) list(w http.ResponseWriter, r *http.Request) {
	if a.missing(w) {
		return
	}
	category := r.URL.Query().Get("category")
	if category == "" {
		category = "electronics"
	}
	page, err1 := number(r, "page", 1)
	limit, err2 := number(r, "limit", 10)
	if err := errors.Join(err1, err2); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	page, limit = min(max(page, 1), 1<<20), min(max(limit, 1), 50)
	items, err := a.db.query(r.Context(), onPage, category, limit, (page-1)*limit)
	if err != nil {
		failed(w)
		return
	}
	if items == nil {
		items = []item{}
	}
	answer(w, http.StatusOK, struct {
		Items []item `json:"items"`
		Total int    `json:"total"`
		Page  int    `json:"page"`
		Limit int    `json:"limit"`
	}{items, len(items), page, limit})
}

// read answers with one item, from the cache if it was asked for within 200 ms.
func (a *app) read(w http.ResponseWriter, r *http.Request) {
	id, ok := a.id(w, r)
	if !ok {
		return
	}
	if body := a.db.cache.get(id); body != nil {
		w.Header().Set("X-Cache", "HIT")
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
		return
	}
	version := a.db.cache.version(id)
	items, err := a.db.query(r.Context(), byID, id)
	if err != nil {
		failed(w)
		return
	}
	if len(items) == 0 {
		http.NotFound(w, r)
		return
	}
	body, err := json.Marshal(items[0])
	if err != nil {
		failed(w)
		return
	}
	a.db.cache.put(id, body, version)
	w.Header().Set("X-Cache", "MISS")
	w.Header().Set("Content-Type", "application/json")
	w.Write(body)
}

// fields is what a client may set.
type fields struct {
	ID       int    `json:"id"`
	Name     string `json:"name"`
	Category string `json:"category"`
	Price    int    `json:"price"`
	Quantity int    `json:"quantity"`
}

// maxBody is how large the JSON of an item may be.
const maxBody = 64 << 10

func decode(w http.ResponseWriter, r *http.Request) (fields, bool) {
	var f fields
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&f); err != nil {
		http.Error(w, "the body is not the JSON of an item", http.StatusBadRequest)
		return f, false
	}
	return f, true
}

func (a *app) create(w http.ResponseWriter, r *http.Request) {
	if a.missing(w) {
		return
	}
	f, ok := decode(w, r)
	if !ok {
		return
	}
	items, err := a.db.query(r.Context(), upserts, f.ID, f.Name, f.Category, f.Price, f.Quantity)
	if err != nil || len(items) == 0 {
		failed(w)
		return
	}
	a.db.cache.invalidate(f.ID) // it may have been there
	answer(w, http.StatusCreated, items[0])
}

func (a *app) update(w http.ResponseWriter, r *http.Request) {
	id, ok := a.id(w, r)
	if !ok {
		return
	}
	f, ok := decode(w, r)
	if !ok {
		return
	}
	items, err := a.db.query(r.Context(), updates, id, f.Name, f.Price, f.Quantity)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		failed(w)
		return
	}
	if len(items) == 0 {
		http.NotFound(w, r)
		return
	}
	a.db.cache.invalidate(id)
	answer(w, http.StatusOK, items[0])
}

func (a *app) id(w http.ResponseWriter, r *http.Request) (int, bool) {
	if a.missing(w) {
		return 0, false
	}
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 32)
	if err != nil {
		http.NotFound(w, r)
		return 0, false
	}
	return int(id), true
}

// missing answers if there is no database.
func (a *app) missing(w http.ResponseWriter) bool {
	if a.db == nil {
		failed(w)
	}
	return a.db == nil
}

func failed(w http.ResponseWriter) {
	http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
}
