// Command sqlite serves notes as JSON from an SQLite database, without cgo.
// Its handlers block on the database; chert needs nothing special for that.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"

	"github.com/chert-http/chert"
	_ "modernc.org/sqlite"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	file := flag.String("db", ":memory:", "the database's file")
	flag.Parse()
	db, err := open(*file)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	srv := &chert.Server{Handler: (&notes{db}).handler()}
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/notes\n", l.Addr())
	if err := chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) }); err != nil {
		log.Fatal(err)
	}
}

// open opens a database with one connection: SQLite writes one at a time, and
// each connection to ":memory:" would be a database of its own. Requests wait
// for it in database/sql.
func open(file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

type notes struct{ db *sql.DB }

type note struct {
	ID   int64  `json:"id"`
	Text string `json:"text"`
}

func (n *notes) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /notes", n.list)
	mux.HandleFunc("POST /notes", n.create)
	mux.HandleFunc("GET /notes/{id}", n.read)
	mux.HandleFunc("DELETE /notes/{id}", n.remove)
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok\n") })
	return mux
}

func (n *notes) list(w http.ResponseWriter, r *http.Request) {
	rows, err := n.db.QueryContext(r.Context(), "SELECT id, text FROM notes ORDER BY id")
	if err != nil {
		fail(w, err)
		return
	}
	defer rows.Close()
	all := []note{}
	for rows.Next() {
		var one note
		if err := rows.Scan(&one.ID, &one.Text); err != nil {
			fail(w, err)
			return
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, all)
}

func (n *notes) create(w http.ResponseWriter, r *http.Request) {
	var one note
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&one); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	err := n.db.QueryRowContext(r.Context(), "INSERT INTO notes (text) VALUES (?) RETURNING id", one.Text).Scan(&one.ID)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Location", "/notes/"+strconv.FormatInt(one.ID, 10))
	answer(w, http.StatusCreated, one)
}

func (n *notes) read(w http.ResponseWriter, r *http.Request) {
	var one note
	err := n.db.QueryRowContext(r.Context(), "SELECT id, text FROM notes WHERE id = ?", r.PathValue("id")).Scan(&one.ID, &one.Text)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, one)
}

func (n *notes) remove(w http.ResponseWriter, r *http.Request) {
	if _, err := n.db.ExecContext(r.Context(), "DELETE FROM notes WHERE id = ?", r.PathValue("id")); err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func fail(w http.ResponseWriter, err error) {
	if errors.Is(err, sql.ErrNoRows) {
		http.Error(w, "no such note", http.StatusNotFound)
		return
	}
	log.Print(err)
	http.Error(w, "the database failed", http.StatusInternalServerError)
}
