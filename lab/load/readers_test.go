package load

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// library has a short file and an endless one.
type library struct {
	fast, slow, gone atomic.Int64
	short            bool // the endless one breaks off
}

func (l *library) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/fast":
		l.fast.Add(1)
		w.Write([]byte("flint"))
	case "/slow":
		l.slow.Add(1)
		defer l.gone.Add(1)
		page := make([]byte, 32<<10)
		for {
			if _, err := w.Write(page); err != nil {
				return
			}
			if l.short {
				panic(http.ErrAbortHandler)
			}
		}
	default:
		http.NotFound(w, r)
	}
}

func TestReaders(t *testing.T) {
	var l library
	s := httptest.NewServer(&l)
	defer s.Close()
	r := Readers{Addr: s.Listener.Addr().String(), Fast: "/fast", Slow: "/slow", Connections: 2, Slows: 20, Rate: 16 << 10, Seconds: 0.5}
	begin := time.Now()
	res, err := r.Run(t.Context())
	if err != nil || res.Errors != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if n := res.Alone.Requests + res.Beside.Requests; n != l.fast.Load() || res.Alone.Requests == 0 || res.Beside.Requests == 0 {
		t.Errorf("%+v, the server counted %d", res, l.fast.Load())
	}
	// Slow: no bite more than had its time since the beginning, however long that was.
	most := int64(float64(r.Slows*r.Rate)*time.Since(begin).Seconds()) + int64(r.Slows*r.Rate/bites)
	if l.slow.Load() != 20 || res.SlowBytes == 0 || res.SlowBytes > most || res.Wanted < int64(20*16<<10)/2 {
		t.Errorf("%+v, %d slow readers, at most %d bytes", res, l.slow.Load(), most)
	}
	s.Close() // returns when all responses have ended, since they are no longer read
	if l.gone.Load() != 20 {
		t.Errorf("%d slow answers have ended", l.gone.Load())
	}
}

func TestReadersFail(t *testing.T) {
	l := library{short: true}
	s := httptest.NewServer(&l)
	defer s.Close()
	r := Readers{Addr: s.Listener.Addr().String(), Fast: "/fast", Slow: "/missing", Connections: 1, Slows: 3, Rate: 64 << 10, Seconds: 0.1}
	if _, err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("slow path missing: %v", err)
	}
	r.Slow = "/slow"
	if res, err := r.Run(t.Context()); err != nil || res.Errors != 3 || !strings.Contains(res.Fault, "EOF") {
		t.Errorf("an answer that breaks off: %+v, %v", res, err)
	}
	r.Fast = "/missing"
	if res, err := r.Run(t.Context()); err != nil || res.Errors != 4 || res.Alone.Requests != 0 {
		t.Errorf("fast path missing: %+v, %v", res, err)
	}
	s.Close()
	if _, err := r.Run(t.Context()); err == nil {
		t.Error("no error without a server")
	}
}

func TestPace(t *testing.T) {
	for _, args := range [][]string{{}, {"beside"}, {"beside", "{"}, {"readers", "{"}, {"stream", "{"}, {"sockets", "{"}, {"march", "{}"}} {
		if res, err := Pace(t.Context(), args); err == nil {
			t.Errorf("%q: %+v, want an error", args, res)
		}
	}
}
