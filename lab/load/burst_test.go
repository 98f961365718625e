package load

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// It sends just as many requests as it is to, and tells apart what was answered.
func TestBurst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tls, closes bool }{{false, false}, {false, true}, {true, false}} {
		var n atomic.Int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if n.Add(1) > 60 {
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}))
		if tt.tls {
			s.TLS = &tls.Config{}
			s.StartTLS()
		} else {
			s.Start()
		}
		b := Burst{Addr: s.Listener.Addr().String(), Path: "/", Requests: 100, Clients: 7, TLS: tt.tls, Close: tt.closes}
		res, err := b.Run(t.Context())
		s.Close()
		if err != nil || res.Errors != 0 || res.Statuses[200] != 60 || res.Statuses[429] != 40 || n.Load() != 100 {
			t.Errorf("%+v: %+v, %v; %d requests", tt, res, err, n.Load())
		}
		if res.P50 > res.P95 || res.P95 > res.P99 || res.Mean == 0 || res.PerSecond <= 0 {
			t.Errorf("%+v: %+v", tt, res)
		}
	}
	gone := Burst{Addr: "127.0.0.1:1", Path: "/", Requests: 4, Clients: 2}
	if res, err := gone.Run(t.Context()); err != nil || res.Errors != 4 || res.Fault == "" {
		t.Errorf("without a server: %+v, %v", res, err)
	}
	if _, err := (Burst{Requests: 1, Clients: 2}).Run(t.Context()); err == nil {
		t.Error("more connections than requests")
	}
}

const abOutput = `Concurrency Level:      10
Time taken for tests:   2.500 seconds
Complete requests:      9990
Failed requests:        3
   (Connect: 0, Receive: 0, Length: 3, Exceptions: 0)
Non-2xx responses:      2
Keep-Alive requests:    10000
Requests per second:    4000.12 [#/sec] (mean)
Time per request:       2.500 [ms] (mean)
Time per request:       0.250 [ms] (mean, across all concurrent requests)
`

func TestParseAb(t *testing.T) {
	res, err := parseAb(abOutput, 10000)
	if want := (AbResult{4000.12, 0.25, 15}); err != nil || res != want {
		t.Errorf("%+v, %v, want %+v", res, err, want)
	}
	if _, err := parseAb("ab: connection refused", 1); err == nil {
		t.Error("no error for no result")
	}
}
