package http3_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	codec "github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/static"
)

// A body whose length is known is one DATA frame, however it is written; others have one for each
// write that is sent (RFC 9114 section 7.2.1).
func TestDataFrames(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := static.New(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	pieces := func(n, size int, flush bool) hf {
		return func(w http.ResponseWriter, _ *http.Request) {
			for range n {
				w.Write(make([]byte, size))
				if flush {
					w.(http.Flusher).Flush()
				}
			}
		}
	}
	declared := func(n int, h hf) hf {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(n))
			h(w, r)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/flushed", pieces(3, 10, true))
	mux.Handle("/declared-flushed", declared(30, pieces(3, 10, true)))
	mux.Handle("/declared-large", declared(90_000, pieces(3, 30_000, false)))
	mux.Handle("/declared-trailers", declared(20, func(w http.ResponseWriter, r *http.Request) {
		pieces(2, 10, true)(w, r)
		w.Header().Set(http.TrailerPrefix+"A", "1")
	}))
	mux.Handle("/declared-copied", declared(90_000, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, strings.NewReader(strings.Repeat("x", 90_000)))
	}))
	mux.Handle("/file", files)
	for path, want := range map[string][]int{
		"/flushed":           {10, 10, 10},
		"/declared-flushed":  {30},
		"/declared-large":    {90_000},
		"/declared-trailers": {20},
		"/declared-copied":   {90_000},
		"/file":              {100_000},
	} {
		t.Run(strings.Trim(path, "/"), func(t *testing.T) {
			t.Parallel()
			for name, h := range map[string]http.Handler{"plain": mux, "direct": files} {
				if name == "direct" && path != "/file" {
					continue
				}
				e := serve(t, &chert.Server{Handler: h}).raw().open(true, headers(with(get[:3], ":path: "+path)...))
				var got []int
				for {
					e.SetReadDeadline(time.Now().Add(servertest.Patience))
					h, p, err := e.next()
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if h.Type == codec.FrameData {
						got = append(got, len(p))
					}
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s: DATA of %d bytes, want %d", name, got, want)
				}
			}
		})
	}
}

// A client has as many requests at a time as it is promised, however many there were before.
func TestStreamsAtATime(t *testing.T) {
	t.Parallel()
	const most = 10
	began, free := make(chan struct{}, most), make(chan struct{})
	s := serve(t, &chert.Server{HTTP2: &http.HTTP2Config{MaxConcurrentStreams: most}, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			began <- struct{}{}
			<-free
		}
	})})
	c := s.raw()
	for range 3*most + 4 {
		if a := c.get("/"); a.ending() != "200" {
			t.Fatal(a.ending())
		}
	}
	var waiting []*exchange
	for range most {
		waiting = append(waiting, c.open(true, headers(path(get, "/wait")...)))
	}
	for range most {
		servertest.Await(t, began, "the handler")
	}
	close(free)
	for _, e := range waiting {
		if a := e.read(); a.ending() != "200" {
			t.Error(a.ending())
		}
	}
}
