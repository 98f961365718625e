package static

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/listing"
)

// lister is a source whose listings begin when a test sees them, and end when it
// says so.
type lister struct {
	source
	began, end chan struct{}
	now, most  atomic.Int64
}

func (l *lister) list(name string, max int) ([]listing.Entry, bool, error) {
	n := l.now.Add(1)
	defer l.now.Add(-1)
	for m := l.most.Load(); n > m && !l.most.CompareAndSwap(m, n); m = l.most.Load() {
	}
	l.began <- struct{}{}
	<-l.end
	return l.source.list(name, max)
}

// No more than some listings are made at the same time. Others wait, a bounded
// number of them, and the rest is answered 503.
func TestListingsBounded(t *testing.T) {
	const places = 2
	files := map[string]string{}
	total := places + maxWaiting
	for i := range total + 3 {
		files[fmt.Sprintf("f%d/", i)] = ""
	}
	s := newSite(t, files, &Options{Listing: true, Index: []string{}})
	l := &lister{source: s.src, began: make(chan struct{}), end: make(chan struct{})}
	s.src, s.lists.places = l, make(chan struct{}, places)
	status := make(chan int)
	ask := func(i int) {
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, httptest.NewRequest("GET", fmt.Sprintf("/f%d/", i), nil))
		status <- rec.Code
	}
	for i := range total {
		go ask(i)
	}
	for range places {
		<-l.began
	}
	for s.lists.waiting.Load() != maxWaiting {
		runtime.Gosched()
	}
	for i, accept := range []string{"", "*/*", "text/html,*/*;q=0.8"} {
		rec, r := httptest.NewRecorder(), httptest.NewRequest("GET", fmt.Sprintf("/f%d/", total+i), nil)
		r.Header.Set("Accept", accept)
		s.ServeHTTP(rec, r)
		page := strings.Contains(rec.Body.String(), reasons[503])
		if rec.Code != 503 || rec.Header().Get("Retry-After") == "" || page != strings.Contains(accept, "html") {
			t.Errorf("one too many, Accept %q: got %d %v %q", accept, rec.Code, rec.Header(), rec.Body)
		}
	}
	go func() {
		for range l.began {
		}
	}()
	close(l.end)
	for range total {
		if got := <-status; got != 200 {
			t.Errorf("got %d", got)
		}
	}
	if got := l.most.Load(); got != places {
		t.Errorf("%d listings at the same time", got)
	}
	close(l.began)
	if len(s.lists.places) != 0 || s.lists.waiting.Load() != 0 {
		t.Error("places are not given back")
	}
}

// slowly is a source whose listings take a while by the site's clock.
type slowly struct {
	source
	s     *site
	takes time.Duration
	lists atomic.Int64
	err   error
}

func (l *slowly) list(name string, max int) ([]listing.Entry, bool, error) {
	l.lists.Add(1)
	l.s.pass(l.takes)
	if l.err != nil {
		return nil, false, l.err
	}
	return l.source.list(name, max)
}

// A listing holds for an interval or, if it took long to make, as long again.
func TestListingLife(t *testing.T) {
	for _, tt := range []struct{ takes, holds time.Duration }{
		{0, time.Duration(interval)},
		{400 * time.Millisecond, time.Duration(interval) - 400*time.Millisecond},
		{1400 * time.Millisecond, 1400 * time.Millisecond},
		{10 * time.Second, 10 * time.Second},
	} {
		s := newSite(t, map[string]string{"d/a.txt": "a"}, &Options{Listing: true, Index: []string{}})
		l := &slowly{source: s.src, s: s, takes: tt.takes}
		s.src = l
		ask := func(want int64) {
			t.Helper()
			rec := httptest.NewRecorder()
			s.ServeHTTP(rec, httptest.NewRequest("GET", "/d/", nil))
			if got := l.lists.Load(); rec.Code != 200 || got != want {
				t.Errorf("%v: got %d, listed %d times, want %d", tt.takes, rec.Code, got, want)
			}
		}
		ask(1)
		s.pass(tt.holds - 1)
		ask(1)
		s.pass(1)
		ask(2)
	}
}

// One that fails gives its place back.
func TestListingFails(t *testing.T) {
	s := newSite(t, map[string]string{"d/": ""}, &Options{Listing: true, Index: []string{}, Logger: newLog(io.Discard)})
	s.src = &slowly{source: s.src, s: s, err: errors.New("on purpose")}
	for range maxListing + 2 {
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, httptest.NewRequest("GET", "/d/", nil))
		if rec.Code != 500 {
			t.Errorf("got %d", rec.Code)
		}
	}
}

// What listings of a large folder cost, asked for in all orders and forms at the
// same time. It asserts nothing, so it runs only if CHERT_ATTACK is set:
//
//	CHERT_ATTACK=1 go test -run ListingAttack -v ./static
func TestListingAttack(t *testing.T) {
	if os.Getenv("CHERT_ATTACK") == "" {
		t.Skip("CHERT_ATTACK is not set")
	}
	dir := t.TempDir()
	for i := range maxListed {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%06d.txt", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h, err := New(dir, &Options{Listing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		for {
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(2 * time.Millisecond):
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		}
	}()
	began := time.Now()
	var all sync.WaitGroup
	for _, sort := range []string{"name", "size", "time"} {
		for _, order := range []string{"asc", "desc"} {
			for _, format := range []string{"html", "json"} {
				for _, accept := range []string{"identity", "gzip", "br", "zstd"} {
					all.Go(func() {
						r := httptest.NewRequest("GET", "/?sort="+sort+"&order="+order+"&format="+format, nil)
						r.Header.Set("Accept-Encoding", accept)
						h.ServeHTTP(nowhere{http.Header{}}, r)
					})
				}
			}
		}
	}
	all.Wait()
	close(stop)
	t.Logf("48 requests in %v, heap in use at most %d MiB", time.Since(began), <-peak>>20)
}

// nowhere takes an answer and keeps nothing.
type nowhere struct{ h http.Header }

func (n nowhere) Header() http.Header       { return n.h }
func (nowhere) WriteHeader(int)             {}
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
