package onchert

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chert-http/chert"
)

func TestTestOf(t *testing.T) {
	for _, c := range []struct{ function, want string }{
		{"github.com/a/b.TestX", "github.com/a/b TestX"},
		{"github.com/a/b/v5_test.TestX.func1.2", "github.com/a/b/v5 TestX"},
		{"net/http_test.testX.func1", "net/http TestX"}, // TestX runs it in several modes
		{"net/http_test.ExampleX", "net/http ExampleX"},
		{"example.org/x.TestMain", ""},
		{"example.org/x.newServer", ""},
		{"testing.tRunner", ""},
		{"example.org/x.(*testing).TestX", ""},
		{"main.init", ""},
		{"google.golang.org/grpc/status_test.s.TestDetails.func1", "google.golang.org/grpc/status Test/Details"},
		{"google.golang.org/grpc/test.(*test).startServer", ""},
	} {
		got := ""
		if pkg, test, ok := testOf(c.function); ok {
			got = pkg + " " + test
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.function, got, c.want)
		}
	}
}

func TestEngineAndNotes(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes")
	t.Setenv(NotesVar, notes)
	for _, c := range []struct {
		env  string
		want chert.Engine
	}{{"", chert.EngineAuto}, {"goroutines", chert.EngineGoroutines}} {
		t.Setenv(EngineVar, c.env)
		s := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }))
		defer s.Close()
		if s.Config.Engine != c.want {
			t.Errorf("%q: engine %v", c.env, s.Config.Engine)
		}
		res, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if b, err := io.ReadAll(res.Body); string(b) != "hello" || err != nil {
			t.Errorf("got %q, %v", b, err)
		}
	}
	done := make(chan struct{})
	go func() { // noted too, under the same name
		Engine()
		done <- struct{}{}
	}()
	<-done
	go runProgram(done)
	<-done
	const pkg = "github.com/chert-http/chert/suites/internal/onchert"
	want := strings.Repeat(pkg+" TestEngineAndNotes\n", 3) + pkg + "\n"
	if b, err := os.ReadFile(notes); string(b) != want || err != nil {
		t.Errorf("notes: %q, %v", b, err)
	}
}

// runProgram makes a server on a goroutine that has no test on its stack.
func runProgram(done chan<- struct{}) {
	Engine()
	done <- struct{}{}
}
