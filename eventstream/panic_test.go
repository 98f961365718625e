package eventstream

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// failing is a ResponseWriter that panics, as some that wrap others do.
type failing struct{ http.ResponseWriter }

func (failing) WriteHeader(int) { panic(http.ErrAbortHandler) }

// A panic of what wraps the ResponseWriter takes no place of a stream.
func TestPanicOfWriter(t *testing.T) {
	t.Parallel()
	h, err := New(&Options{MaxStreams: 1})
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { recover() }()
		h.ServeHTTP(failing{httptest.NewRecorder()}, httptest.NewRequest("GET", "/", nil))
	}()
	if !h.enter() {
		t.Error("a place is taken")
	}
}

// A panic of OnClose does not end the process, and is logged.
func TestPanicOfClose(t *testing.T) {
	t.Parallel()
	logged := make(lines, 10)
	h, err := NewPoll(&PollOptions{Logger: slog.New(slog.NewTextHandler(logged, nil)), OnClose: func(*Poll) { panic("of the user's") }})
	if err != nil {
		t.Fatal(err)
	}
	p := &Poll{h: h}
	partEnded(&p.parts, h.o.OnClose, p, nil) // OnOpen has returned
	(*polled)(p).Closed()
	if line := servertest.Await(t, logged, "the log"); !strings.Contains(line, "of the user's") {
		t.Error(line)
	}
}

// lines are what is logged.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
