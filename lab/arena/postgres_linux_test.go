package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// seed is the benchmark's table, with 2,000 rows.
const seed = `CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, category TEXT NOT NULL, price INTEGER NOT NULL, quantity INTEGER NOT NULL,
	active BOOLEAN NOT NULL, tags JSONB NOT NULL, rating_score INTEGER NOT NULL, rating_count INTEGER NOT NULL);
INSERT INTO items SELECT i, 'Item ' || i, CASE i % 2 WHEN 0 THEN 'office' ELSE 'electronics' END, 5 + i % 500, i % 100, i % 3 = 0, '["fast","new"]', i % 50, i
	FROM generate_series(1, 2000) AS i`

// postgres starts a server of its own and returns the URL of a database with the table.
func postgres(t *testing.T) string {
	t.Helper()
	initdb, server := program(t, "initdb"), program(t, "postgres")
	dir, err := os.MkdirTemp("", "pg") // short: the path of a unix socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	attributes := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Getuid() == 0 {
		attributes.Credential = unprivileged(t, dir) // Postgres refuses to run as root
	}
	data := filepath.Join(dir, "data")
	command := exec.Command(initdb, "-D", data, "-U", "bench", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
	command.SysProcAttr, command.Dir = attributes, dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	run := exec.Command(server, "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=20")
	run.SysProcAttr, run.Dir = attributes, dir
	var log strings.Builder
	run.Stderr = &log
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		run.Process.Signal(syscall.SIGQUIT)
		run.Wait()
	})
	url := "postgres://bench@/postgres?host=" + dir
	var conn *pgx.Conn
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if conn, err = pgx.Connect(t.Context(), url); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%v\n%s", err, log.String())
		}
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	return url
}

// program finds one of Debian's, which keeps them out of PATH, in a folder for each version.
func program(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	if found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); err == nil && len(found) > 0 {
		return found[len(found)-1]
	}
	if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
		t.Fatalf("%s is not installed", name)
	}
	t.Skipf("%s is not installed; on Debian: apt-get install postgresql", name)
	return ""
}

// unprivileged is a user to whom the folder then belongs.
func unprivileged(t *testing.T, dir string) *syscall.Credential {
	t.Helper()
	var u *user.User
	var err error
	for _, name := range []string{"postgres", "nobody"} {
		if u, err = user.Lookup(name); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err == nil {
		err = os.Chown(dir, int(uid), -1)
	}
	if err != nil {
		t.Fatal(err)
	}
	// The group stays, and with it the way to folders that are closed to others.
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(os.Getgid())}
}

func TestPostgres(t *testing.T) {
	base := "http://" + serve(t, settings{database: postgres(t), connections: "10"})
	t.Run("async-db", func(t *testing.T) { asyncDB(t, base) })
	t.Run("list", func(t *testing.T) { pages(t, base) })
	t.Run("crud", func(t *testing.T) { crud(t, base) })
}

type answered struct {
	Items []map[string]any `json:"items"`
	Count int              `json:"count"`
	Total int              `json:"total"`
	Page  int              `json:"page"`
	Limit int              `json:"limit"`
}

func ask(t *testing.T, url string) answered {
	t.Helper()
	resp, body := do(t, "GET", url, "")
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s: %s %v", url, resp.Status, resp.Header)
	}
	var a answered
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatal(err)
	}
	for _, i := range a.Items {
		r, ok := i["rating"].(map[string]any)
		_, tags := i["tags"].([]any)
		_, active := i["active"].(bool)
		if !ok || r["score"] == nil || !tags || !active {
			t.Fatalf("%s: %v", url, i)
		}
	}
	return a
}

func asyncDB(t *testing.T, base string) {
	for _, tt := range []struct{ low, high, limit, want int }{{5, 80, 7, 7}, {20, 150, 18, 18}, {100, 400, 33, 33}, {10, 50, 50, 50}, {10, 50, 500, 50}, {10, 50, 0, 1}, {9999, 9999, 50, 0}} {
		a := ask(t, fmt.Sprintf("%s/async-db?min=%d&max=%d&limit=%d", base, tt.low, tt.high, tt.limit))
		if a.Count != tt.want || len(a.Items) != tt.want {
			t.Errorf("%+v: %d, %d items", tt, a.Count, len(a.Items))
		}
		for _, i := range a.Items {
			if p := int(i["price"].(float64)); p < tt.low || p > tt.high {
				t.Errorf("%+v: price %d", tt, p)
			}
		}
	}
	if resp, _ := do(t, "GET", base+"/async-db?min=low", ""); resp.StatusCode != 400 {
		t.Errorf("no number: %s", resp.Status)
	}
}

func pages(t *testing.T, base string) {
	seen := map[float64]bool{}
	for page := 1; page <= 2; page++ {
		a := ask(t, fmt.Sprintf("%s/crud/items?category=electronics&page=%d&limit=5", base, page))
		if len(a.Items) != 5 || a.Total != 5 || a.Page != page || a.Limit != 5 {
			t.Errorf("page %d: %+v", page, a)
		}
		for _, i := range a.Items {
			id := i["id"].(float64)
			if seen[id] || i["category"] != "electronics" {
				t.Errorf("page %d: %v", page, i)
			}
			seen[id] = true
		}
	}
	if a := ask(t, base+"/crud/items?limit=1000"); len(a.Items) != 50 {
		t.Errorf("%d items", len(a.Items))
	}
	if a := ask(t, base+"/crud/items?category=none"); a.Items == nil || len(a.Items) != 0 {
		t.Errorf("%+v", a)
	}
}

// crud does what the benchmark's validation does.
func crud(t *testing.T, base string) {
	get := func(id int) (status int, name, from string) {
		resp, body := do(t, "GET", fmt.Sprintf("%s/crud/items/%d", base, id), "")
		var i item
		if resp.StatusCode == 200 {
			if err := json.Unmarshal([]byte(body), &i); err != nil || i.ID != id {
				t.Errorf("%d: %q, %v", id, body, err)
			}
		}
		return resp.StatusCode, i.Name, resp.Header.Get("X-Cache")
	}
	if _, name, from := get(42); name != "Item 42" || from != "MISS" {
		t.Errorf("first: %q, %s", name, from)
	}
	hit := false
	for range 20 { // a busy machine may take longer than the entry lives
		if _, name, from := get(42); name != "Item 42" {
			t.Errorf("again: %q", name)
		} else if from == "HIT" {
			hit = true
			break
		}
	}
	if !hit {
		t.Error("never from the cache")
	}
	for _, id := range []int{999999, -1} {
		if status, _, _ := get(id); status != 404 {
			t.Errorf("%d: status %d", id, status)
		}
	}
	const created = `{"id":200001,"name":"Bench Test","category":"test","price":25,"quantity":10}`
	for range 2 { // the second is an update
		if resp, body := do(t, "POST", base+"/crud/items", created, "Content-Type", "application/json"); resp.StatusCode != 201 || !strings.Contains(body, "Bench Test") {
			t.Errorf("create: %s %s", resp.Status, body)
		}
	}
	if _, name, _ := get(200001); name != "Bench Test" {
		t.Errorf("created %q", name)
	}
	resp, body := do(t, "PUT", base+"/crud/items/200001", `{"name":"Updated","price":30,"quantity":5}`, "Content-Type", "application/json")
	if resp.StatusCode != 200 || !strings.Contains(body, `"price":30`) {
		t.Errorf("update: %s %s", resp.Status, body)
	}
	if _, name, from := get(200001); name != "Updated" || from != "MISS" {
		t.Errorf("after the update: %q, %s", name, from)
	}
	for path, want := range map[string]int{"/crud/items/999999": 404, "/crud/items/x": 404} {
		if resp, _ := do(t, "PUT", base+path, `{"name":"x"}`); resp.StatusCode != want {
			t.Errorf("PUT %s: %s", path, resp.Status)
		}
	}
	if resp, _ := do(t, "PUT", base+"/crud/items/1", `{"name":`); resp.StatusCode != 400 {
		t.Errorf("malformed: %s", resp.Status)
	}
}
