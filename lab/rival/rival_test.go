package rival

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/files"
	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/work"
)

func TestOpenUnknown(t *testing.T) {
	if _, err := Open(t.Context(), t.TempDir(), []string{"apache"}); err == nil || !strings.Contains(err.Error(), "nethttp, fasthttp, hertz") {
		t.Errorf("Open = %v", err)
	}
}

// A server that cannot start must report why and leave nothing behind.
func TestStartFailure(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	spec := Spec{Name: "broken", command: func(place) (child.Command, error) {
		return child.Command{Args: []string{"sh", "-c", "echo no such option >&2; exit 2"}}, nil
	}}
	_, err := Start(context.Background(), spec, Room{})
	if err == nil || !strings.Contains(err.Error(), "no such option") {
		t.Errorf("Start = %v", err)
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Every server gives the same answers; those without code of ours, to what they have.
func TestServers(t *testing.T) {
	if testing.Short() {
		t.Skip("builds four programs")
	}
	items, err := work.ItemsJSON()
	if err != nil {
		t.Fatal(err)
	}
	post := func(path, contentType, body string) exchange.Request {
		return exchange.Request{Method: "POST", Path: path, Type: contentType, Body: body}
	}
	hello := exchange.OK("text/plain", "Hello, World!")
	tests := []struct {
		request exchange.Request
		want    exchange.Answer
		code    bool // needs code of ours
	}{
		{exchange.Get("/"), hello, false},
		{exchange.Get("/users/123/posts/456"), exchange.OK("text/plain", "user 123 post 456"), false},
		{post("/form?id=7", "application/x-www-form-urlencoded", "city=St+Ives&name=Ada&x=y"), exchange.OK("text/plain", "7 Ada St Ives"), true},
		{exchange.Get("/items"), exchange.OK("application/json", string(items)), true},
		{exchange.Get("/sleep"), hello, true},
		{exchange.Get("/compute"), hello, true},
		{exchange.Get("/turning"), hello, true},
		{post("/upload", "application/octet-stream", strings.Repeat("x", 8<<20)), exchange.OK("text/plain", "8388608"), true},
	}
	dir := t.TempDir()
	for _, spec := range specs {
		if !spec.Does.Has(Answers) {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			s := started(t, dir, spec.Name, Room{Connections: 10})
			for _, tt := range tests {
				if tt.code && !s.Does.Has(Code) {
					continue
				}
				got, err := exchange.Fetch(t.Context(), s.Addr, tt.request)
				if err == nil {
					err = got.Differs(tt.want)
				}
				if err != nil {
					t.Errorf("%s: %v", tt.request.Path, err)
				}
			}
			if s.Does.Has(Code) {
				checkSwitches(t, s.Addr)
			}
		})
	}
}

// Every server of files has the same ones, and notices within some seconds that one was replaced.
func TestServersOfFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("builds Caddy, among others")
	}
	all := append(files.Web(1, 20), files.File{Name: "/d00/large.png", Size: 3 << 20})
	folder, err := files.Write(t.TempDir(), all)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, spec := range specs {
		if !spec.Does.Has(Files) {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			s := started(t, dir, spec.Name, Room{Connections: 10, Files: folder})
			for _, f := range all {
				content, err := f.Content()
				if err == nil {
					err = answers(t, s, f.Name, content)
				}
				if err != nil {
					t.Errorf("%s: %v", f.Name, err)
				}
			}
			if got, err := exchange.Fetch(t.Context(), s.Addr, exchange.Get("/nothing")); err != nil || got.Status != 404 {
				t.Errorf("a file that is not there: %v, %v", got, err)
			}
			checkNotices(t, s, folder)
		})
	}
}

func answers(t *testing.T, s *Server, name, content string) error {
	got, err := exchange.Fetch(t.Context(), s.Addr, exchange.Get(name))
	if err != nil {
		return err
	}
	return got.Differs(exchange.OK("", content))
}

// checkNotices replaces a file and waits until the server has the new one.
func checkNotices(t *testing.T, s *Server, folder string) {
	t.Helper()
	path := filepath.Join(folder, "changing.html")
	for _, content := range []string{"flint", "chert and flint"} {
		if err := os.WriteFile(path+".new", []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		var err error
		for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if err = answers(t, s, "/changing.html", content); err == nil {
				break
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// started builds a server if need be and starts it.
func started(t *testing.T, dir, name string, room Room) *Server {
	t.Helper()
	found, err := Open(t.Context(), dir, []string{name})
	if err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	s, err := Start(t.Context(), found[0], room)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// checkSwitches requests what is not measured but needed for it.
func checkSwitches(t *testing.T, addr string) {
	t.Helper()
	for path, want := range map[string]int{"/nothing": 404, "/turn?to=rest": 400, "/turn?to=sleep": 200, "/turning": 200, "/debug/gc": 200} {
		if got, err := exchange.Fetch(t.Context(), addr, exchange.Get(path)); err != nil || got.Status != want {
			t.Errorf("%s: %d, %v, want %d", path, got.Status, err, want)
		}
	}
	var p measure.Process
	got, err := exchange.Fetch(t.Context(), addr, exchange.Get("/debug/stats"))
	if err == nil {
		err = json.Unmarshal([]byte(got.Body), &p)
	}
	if err != nil || p.Goroutines < 1 || p.HeapInUse < 1 || p.Resident < 1<<20 {
		t.Errorf("/debug/stats: %+v, %v", got, err)
	}
}

// Servers of HTTP/3 give the same answers and files over it, and over HTTP/2.
func TestServersOfHTTP3(t *testing.T) {
	if testing.Short() {
		t.Skip("builds Caddy, among others")
	}
	one := files.File{Name: "/one.css", Size: 1 << 10}
	folder, err := files.Write(t.TempDir(), []files.File{one})
	if err != nil {
		t.Fatal(err)
	}
	content, err := one.Content()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, spec := range specs {
		for trade, want := range map[Trade]exchange.Answer{Answers: exchange.OK("text/plain", "Hello, World!"), Files: exchange.OK("", content)} {
			if !spec.Does.Has(H3 | trade) {
				continue
			}
			room, path := Room{Connections: 10, TLS: true}, "/"
			if trade == Files {
				room.Files, path = folder, one.Name
			}
			t.Run(spec.Name+path, func(t *testing.T) {
				s := started(t, dir, spec.Name, room)
				for over, fetch := range map[string]func(context.Context, string, exchange.Request) (exchange.Answer, error){
					"HTTP/2": exchange.FetchH2, "HTTP/3": exchange.FetchH3,
				} {
					got, err := fetch(t.Context(), s.TLS, exchange.Get(path))
					if err == nil {
						err = got.Differs(want)
					}
					if err != nil {
						t.Errorf("%s: %v", over, err)
					}
				}
			})
		}
	}
}
