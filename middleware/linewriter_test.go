package middleware

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Loggers that share a LineWriter share its order, whatever their formats, and
// none of them ends it for the others.
func TestLineWriterShared(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := NewLineWriter(&out, &LineWriterOptions{BufferSize: 1 << 20, FlushInterval: time.Hour})
	clf := NewAccessLog(&AccessLogOptions{Format: LogCommon, Output: w})
	text := NewAccessLog(&AccessLogOptions{Format: LogText, Output: w})
	errs := log.New(w, "chert: ", 0)
	plain(clf.Wrap(hello), request("GET", "/1", ""))
	errs.Print("2")
	plain(text.Wrap(hello), request("GET", "/3", ""))
	slog.New(slog.NewTextHandler(w, nil)).Info("4")
	if out.Len() > 0 {
		t.Errorf("written early: %s", out.String())
	}
	if err := clf.Close(); err != nil || strings.Count(out.String(), "\n") != 4 {
		t.Errorf("%v after Close: %s", err, out.String())
	}
	errs.Print("5")
	if strings.Contains(out.String(), "chert: 5") {
		t.Error("an AccessLog has closed the LineWriter of others")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	errs.Print("6")
	want := []string{`"GET /1 `, "chert: 2", "path=/3", "msg=4", "chert: 5", "chert: 6"}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got\n%s", out.String())
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) {
			t.Errorf("line %d is %q, want %q in it", i, line, want[i])
		}
	}
}

// A full LineWriter says so, keeps its memory bounded and drops nothing.
func TestLineWriterFull(t *testing.T) {
	t.Parallel()
	pr, pw := io.Pipe()
	const size = 64 << 10
	w := NewLineWriter(pw, &LineWriterOptions{BufferSize: size, FlushInterval: time.Hour})
	written := 0
	for ; !w.Full() || written < size; written += 100 { // one buffer is being written, the other is full
		fmt.Fprintf(w, "%099d\n", written)
	}
	if written > 2*size+200 {
		t.Errorf("%d bytes are kept", written)
	}
	waits := make(chan struct{})
	go func() {
		fmt.Fprintf(w, "%099d\n", written)
		close(waits)
	}()
	read := make(chan int)
	go func() {
		n, _ := io.Copy(io.Discard, pr)
		read <- int(n)
	}()
	<-waits
	if err := w.Close(); err != nil || w.Full() {
		t.Errorf("%v, full: %v", err, w.Full())
	}
	pw.Close()
	if got := <-read; got != written+100 {
		t.Errorf("%d bytes of %d", got, written+100)
	}
}

// Without a limit of time a line stays until the buffer is full or is flushed.
func TestLineWriterWithoutTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		w := NewLineWriter(&out, &LineWriterOptions{BufferSize: 1 << 20, FlushInterval: -1})
		defer w.Close()
		io.WriteString(w, "a line\n")
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if got := out.String(); got != "" {
			t.Errorf("written before: %q", got)
		}
		if w.Flush(); out.String() != "a line\n" {
			t.Errorf("got %q", out.String())
		}
	})
}

// failingOnce fails for its first line.
type failingOnce struct {
	strings.Builder
	failed bool
}

func (w *failingOnce) Write(p []byte) (int, error) {
	if !w.failed {
		w.failed = true
		return 0, io.ErrShortWrite
	}
	return w.Builder.Write(p)
}

// No line waits for what is told about those that are lost, and that may use the
// LineWriter itself.
func TestLineWriterFailed(t *testing.T) {
	for _, buffer := range []int{-1, 1 << 10} {
		synctest.Test(t, func(t *testing.T) {
			var out failingOnce
			told, goOn := make(chan int64, 1), make(chan struct{})
			var w *LineWriter
			w = NewLineWriter(&out, &LineWriterOptions{BufferSize: buffer, FlushInterval: time.Second, Failed: func(n int64, _ error) {
				io.WriteString(w, "told\n")
				told <- n
				<-goOn
			}})
			go io.WriteString(w, "lost\n")
			if n := <-told; n != 1 || w.Lost() != 1 {
				t.Errorf("%d lines, %d lost", n, w.Lost())
			}
			io.WriteString(w, "next\n")
			if err := w.Flush(); err != io.ErrShortWrite || out.String() != "told\nnext\n" {
				t.Errorf("%v, %q", err, out.String())
			}
			close(goOn)
			w.Close()
		})
	}
}
