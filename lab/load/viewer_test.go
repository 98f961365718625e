package load

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// Each viewer gets its events; what has no data is none.
func TestWatch(t *testing.T) {
	more := make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flush := http.NewResponseController(w).Flush
		fmt.Fprint(w, "retry: 1000\n\ndata: {}\n\n")
		flush()
		for {
			select {
			case <-more:
				fmt.Fprint(w, "data: a\ndata: b\n\n: beat\n\ndata: c\n\n")
				flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	defer s.Close()
	v, err := Watch(t.Context(), s.URL, 2)
	if err != nil {
		t.Fatal(err)
	}
	more <- true
	for n := 0; n < 4; {
		v.mu.Lock()
		n = len(v.seen)
		v.mu.Unlock()
		runtime.Gosched()
	}
	seen, err := v.Close()
	if err != nil {
		t.Fatal(err)
	}
	bytes := map[int][]int{}
	for _, s := range seen {
		bytes[s.Viewer] = append(bytes[s.Viewer], s.Bytes)
	}
	if got := []string{fmt.Sprint(bytes[0]), fmt.Sprint(bytes[1])}; got[0] != "[10 17 9]" && got[1] != "[10 17 9]" || got[0] != "[10]" && got[1] != "[10]" {
		t.Errorf("got %v", got)
	}
}

func TestWatchFails(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if _, err := Watch(t.Context(), s.URL, 3); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
	ends := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data: {}\n\n") }))
	defer ends.Close()
	v, err := Watch(t.Context(), ends.URL, 1)
	for err == nil { // until the stream has ended
		v.mu.Lock()
		err = v.err
		v.mu.Unlock()
		runtime.Gosched()
	}
	if v != nil {
		if _, err = v.Close(); err == nil {
			t.Error("no error although the stream has ended")
		}
	}
}
