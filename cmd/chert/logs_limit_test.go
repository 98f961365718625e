package main

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/ratelimit"
)

// A request that the full log of a site leaves to the ordinary path is counted there only.
func TestFullLogCountsOnce(t *testing.T) {
	t.Parallel()
	for _, rates := range [][]string{{"4/h"}, {"4/h", "5/h"}} {
		var all []ratelimit.Rate
		for _, text := range rates {
			all = append(all, ratelimit.Must(ratelimit.ParseRate(text)))
		}
		limit, err := limiter{store: ratelimit.NewMemory(nil)}.limit("address", all)
		if err != nil {
			t.Fatal(err)
		}
		pr, pw := io.Pipe()
		w := middleware.NewLineWriter(pw, &middleware.LineWriterOptions{BufferSize: 64 << 10})
		line := append(bytes.Repeat([]byte("x"), 127), '\n')
		for n := 0; n <= 64<<10 || !w.Full(); n += len(line) { // one buffer is being written, the other is full
			w.Write(line)
		}
		full := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: w})
		l := &logs{top: noLines}
		h := l.around(l.ofFile(limit(full.Override(direct.NewResponse(200, nil, []byte("page")))))).(direct.Handler)
		var x direct.Exchange
		for range 10 {
			x.Wire().Reset(wire.Request{Method: "GET", Target: []byte("/"), Path: []byte("/"), RemoteAddr: "192.0.2.1:1234"})
			if h.ServeDirect(&x) {
				t.Errorf("%v: status %d while the log is full", rates, x.Wire().Status())
			}
			x.Wire().Forget()
		}
		go io.Copy(io.Discard, pr)
		for i := range 5 {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = "192.0.2.1:1234"
			res := httptest.NewRecorder()
			h.ServeHTTP(res, r)
			if want := map[bool]int{true: 200, false: 429}[i < 4]; res.Code != want {
				t.Errorf("%v: request %d is answered %d, want %d", rates, i, res.Code, want)
			}
		}
		w.Close()
		pw.Close()
	}
}

// A log of a site beside those of the file and of refusals costs no allocation on the fast path.
func TestLogsAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	to := func(format middleware.LogFormat) *middleware.AccessLog {
		return middleware.NewAccessLog(&middleware.AccessLogOptions{Format: format, Output: io.Discard, BufferSize: 16 << 20,
			Skip: func(path string) bool { return path == "/skipped" }})
	}
	l := &logs{top: to(middleware.LogCombined)}
	own := to(middleware.LogVhostCombined)
	s := newSites(l)
	page := direct.NewResponse(200, nil, []byte("page"))
	s.table.Add("a.example", own.Override(page).(direct.Handler))
	s.table.Add("b.example", l.ofFile(page).(direct.Handler))
	s.table.Add("c.example", noLines.Override(page).(direct.Handler))
	f := &front{}
	f.replace(newGeneration(l.around(l.ofFile(s)), l.top))
	var x direct.Exchange
	for _, host := range []string{"a.example", "b.example", "c.example", "unknown"} {
		for _, path := range []string{"/", "/skipped"} {
			req := wire.Request{Method: "GET", Target: []byte(path), Path: []byte(path), Host: []byte(host), RemoteAddr: "192.0.2.1:1234",
				Fields: wire.FieldsOf(nil)}
			if n := testing.AllocsPerRun(100, func() {
				x.Wire().Reset(req)
				if !f.ServeDirect(&x) {
					t.Error("not direct")
				}
				sent(&x)
			}); n != 0 {
				t.Errorf("%s%s: %v allocations", host, path, n)
			}
		}
	}
}

// linesOf returns the lines of logs together; a file that is not there has none.
func linesOf(t *testing.T, files ...string) (all []string) {
	t.Helper()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			all = append(all, line)
		}
	}
	return all
}
