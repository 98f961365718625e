package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert/examples/internal/engines"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // cancelled queries, intentional here
	engines.Main(m)
}

func database(t *testing.T) *notes {
	t.Helper()
	db, err := open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &notes{db}
}

func TestRoutes(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, database(t).handler())
		for _, c := range []struct {
			method, path, body string
			status             int
			want               string
		}{
			{"GET", "/notes", "", 200, "[]\n"},
			{"POST", "/notes", `{"text":"one"}`, 201, `{"id":1,"text":"one"}` + "\n"},
			{"POST", "/notes", `{"text":"two"}`, 201, `{"id":2,"text":"two"}` + "\n"},
			{"POST", "/notes", `{"text":`, 400, "unexpected EOF\n"},
			{"GET", "/notes/2", "", 200, `{"id":2,"text":"two"}` + "\n"},
			{"GET", "/notes/3", "", 404, "no such note\n"},
			{"DELETE", "/notes/1", "", 204, ""},
			{"GET", "/notes", "", 200, `[{"id":2,"text":"two"}]` + "\n"},
			{"PUT", "/notes/2", "", 405, "Method Not Allowed\n"},
		} {
			s.Expect(t, c.method, c.path, c.body, c.status, c.want)
		}
	})
}

// While many handlers wait for the database, the server responds to other
// requests, on new and on kept connections. A client that gives up ends its
// handler's wait, and the rest completes when the database is free.
func TestBlocking(t *testing.T) {
	const waiting = 64
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		n := database(t)
		var running atomic.Int64
		h := n.handler()
		s := e.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			running.Add(1)
			defer running.Add(-1)
			h.ServeHTTP(w, r)
		}))
		s.Expect(t, "GET", "/health", "", 200, "ok\n")
		held, err := n.db.Conn(context.Background()) // the only one
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()

		ctx, giveUp := context.WithCancel(context.Background())
		defer giveUp()
		var wg sync.WaitGroup
		var done atomic.Int64
		for i := range waiting {
			wg.Go(func() {
				req, _ := http.NewRequest("GET", s.URL+"/notes", nil)
				if i%2 == 0 {
					req = req.WithContext(ctx)
				}
				res, err := s.Client.Do(req)
				if err != nil {
					return
				}
				defer res.Body.Close()
				if b, err := io.ReadAll(res.Body); err == nil && string(b) == "[]\n" {
					done.Add(1)
				}
			})
		}
		engines.Eventually(t, "all handlers wait", func() bool { return n.db.Stats().WaitCount >= waiting })
		for range 50 {
			s.Expect(t, "GET", "/health", "", 200, "ok\n")
		}
		giveUp()
		engines.Eventually(t, "half of the handlers have ended", func() bool { return running.Load() == waiting/2 })
		s.Expect(t, "GET", "/health", "", 200, "ok\n")
		held.Close()
		wg.Wait()
		if done.Load() != waiting/2 {
			t.Errorf("%d requests were served, want %d", done.Load(), waiting/2)
		}
	})
}

// Many clients write at once, to a file; nothing is lost.
func TestWriters(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		db, err := open(filepath.Join(t.TempDir(), "notes.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec("PRAGMA synchronous = OFF"); err != nil { // a slow disk is not the subject
			t.Fatal(err)
		}
		s := e.Start(t, (&notes{db}).handler())
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 25 {
					text := fmt.Sprintf(`{"text":"%d-%d"}`, i, j)
					res, err := s.Client.Post(s.URL+"/notes", "application/json", strings.NewReader(text))
					if err != nil {
						t.Error(err)
						return
					}
					res.Body.Close()
					if res.StatusCode != 201 {
						t.Errorf("%s: %s", text, res.Status)
					}
				}
			})
		}
		wg.Wait()
		var n int
		if err := db.QueryRow("SELECT count(DISTINCT text) FROM notes").Scan(&n); err != nil || n != 200 {
			t.Errorf("%d notes, %v, want 200", n, err)
		}
	})
}

// Quick requests and slow queries alternate on kept connections, so that routes
// are tried on the event loops where there are any. Waits for the database
// delay no other request.
func TestQuickAndSlow(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		n := database(t)
		mux := http.NewServeMux()
		mux.Handle("/", n.handler())
		mux.HandleFunc("GET /count/{to}", func(w http.ResponseWriter, r *http.Request) {
			var sum int64
			err := n.db.QueryRowContext(r.Context(), `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < CAST(? AS INTEGER))
				SELECT sum(x) FROM c`, r.PathValue("to")).Scan(&sum)
			if err != nil {
				fail(w, err)
				return
			}
			fmt.Fprintln(w, sum)
		})
		s := e.Start(t, mux)
		s.Expect(t, "POST", "/notes", `{"text":"one"}`, 201, `{"id":1,"text":"one"}`+"\n")
		for range 200 { // long enough for a route to become quick
			s.Expect(t, "GET", "/health", "", 200, "ok\n")
			s.Expect(t, "GET", "/count/1", "", 200, "1\n")
			s.Expect(t, "GET", "/notes/1", "", 200, `{"id":1,"text":"one"}`+"\n")
		}
		held, err := n.db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				for _, to := range []int64{1, 20000, 2} {
					path, want := fmt.Sprintf("/count/%d", to), fmt.Sprintln(to*(to+1)/2)
					if i%2 == 0 {
						path, want = "/notes/1", `{"id":1,"text":"one"}`+"\n"
					}
					res, err := s.Client.Get(s.URL + path)
					if err != nil {
						t.Error(err)
						return
					}
					b, err := io.ReadAll(res.Body)
					res.Body.Close()
					if err != nil || string(b) != want {
						t.Errorf("%s: got %q, %v", path, b, err)
					}
				}
			})
		}
		engines.Eventually(t, "the handlers wait", func() bool { return n.db.Stats().WaitCount >= 16 })
		for range 50 {
			s.Expect(t, "GET", "/health", "", 200, "ok\n")
		}
		held.Close()
		for range 50 { // while the slow queries run
			s.Expect(t, "GET", "/health", "", 200, "ok\n")
		}
		wg.Wait()
	})
}

func TestSame(t *testing.T) {
	engines.Same(t, func() http.Handler { return database(t).handler() }, nil,
		"GET /notes HTTP/1.1\nHost: h\n\n",
		"HEAD /notes HTTP/1.1\nHost: h\n\n",
		"POST /notes HTTP/1.1\nHost: h\nContent-Length: 14\n\n{\"text\":\"one\"}",
		"POST /notes HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\ne\n{\"text\":\"two\"}\n0\n\n",
		"POST /notes HTTP/1.1\nHost: h\nContent-Length: 1\n\n{",
		"GET /notes/1 HTTP/1.0\n\n",
		"GET /notes/3 HTTP/1.1\nHost: h\n\n",
		"DELETE /notes/1 HTTP/1.1\nHost: h\n\n",
		"PUT /notes/1 HTTP/1.1\nHost: h\n\n",
	)
}
