package metrics

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/chert-http/chert/proxy"
	"github.com/chert-http/chert/stats"
)

// A fake is a stats.Source that has counted what it was told.
type fake struct {
	stats.Source
	stats func() stats.Snapshot
}

func (f fake) Stats() stats.Snapshot { return f.stats() }

// busyServer returns a source that has counted something of all there is.
func busyServer() stats.Source { return fake{stats: full} }

func observed(d ...time.Duration) (h stats.Histogram) {
	for _, d := range d {
		h.Observe(d, 1)
	}
	return h
}

func full() (s stats.Snapshot) {
	counts := func(names ...string) (all []stats.Count) {
		for i, name := range names {
			all = append(all, stats.Count{Name: name, N: uint64(i + 1)})
		}
		return all
	}
	quick := observed(3*time.Microsecond, 40*time.Microsecond, 2*time.Millisecond, time.Minute)
	s.Since, s.At = time.Now().Add(-time.Hour), time.Now()
	s.Connections = stats.Connections{Accepted: 9, Closed: 4, Refused: counts("limit", "address"), Open: 5, Loops: 4, Goroutines: 1,
		Active: 2, HTTP1: 3, HTTP2: 1, WebSockets: 1, EventStreams: 1, Hijacked: 1}
	for _, protocol := range []string{"HTTP/1.0", "HTTP/1.1", "HTTP/2.0"} {
		for class := range 6 {
			for way := range stats.Ways {
				s.Requests = append(s.Requests, stats.Requests{Protocol: protocol, Class: class, Way: way, N: uint64(class + 1)})
			}
		}
	}
	s.Running, s.Waiting, s.BytesRead, s.BytesWritten, s.Buffers, s.BufferBytes = 3, 2, 1000, 2000, 1, 4096
	s.Syscalls = counts("read", "write", "wait", "accept")
	s.Timeouts = counts("head", "read", "write", "idle", "stall", "handshake")
	s.Malformed = counts("line", "field")
	s.Total, s.Head, s.Wait, s.Handler, s.Write = quick, quick, quick, quick, quick
	for _, p := range []string{"GET /users/{id}", "POST example.com/a b", "/", stats.NoRoute, stats.Other} {
		s.Routes = append(s.Routes, stats.Route{Pattern: p, Classes: [6]uint64{0, 0, 3, 0, 0, 1}, Ways: [stats.Ways]uint64{1, 3},
			Duration: quick, Handler: quick, Handovers: 1, Demotions: 1})
	}
	for range 2 {
		s.Loops = append(s.Loops, stats.Loop{Turns: 100, Events: 200, Inline: 5, Pooled: 4, Direct: 3, Handovers: 2, Yields: 1,
			Connections: 2, AtWork: 1, Spare: 2, Mail: 1, Requeued: 1, Lag: time.Millisecond, Turn: quick})
	}
	s.Loops[1].Stale = true
	s.Placement = stats.Placement{Proofs: 4, Demotions: 2}
	s.TLS = stats.TLS{Versions: counts("1.2", "1.3"), Resumed: 1, EarlyRequests: 1, Failed: 1, Running: 1, Waiting: 1, Duration: quick}
	return s
}

// gather returns what a pedantic registry makes of src: it checks that all metrics are
// described and that no series is exported twice.
func gather(t *testing.T, src stats.Source, o *Options) map[string]*dto.MetricFamily {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewCollector(src, o))
	got, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*dto.MetricFamily)
	for _, f := range got {
		all[f.GetName()] = f
	}
	return all
}

// find returns the metric of a family with these labels, "name=value".
func find(t *testing.T, f *dto.MetricFamily, labels ...string) *dto.Metric {
	t.Helper()
	for _, m := range f.GetMetric() {
		var have []string
		for _, l := range m.GetLabel() {
			have = append(have, l.GetName()+"="+l.GetValue())
		}
		if !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(have, l) }) {
			return m
		}
	}
	t.Fatalf("%s: none with %q in %v", f.GetName(), labels, f)
	return nil
}

func TestCollector(t *testing.T) {
	t.Parallel()
	all := gather(t, busyServer(), &Options{Upstreams: func() []proxy.UpstreamStatus {
		return []proxy.UpstreamStatus{
			{Name: "app", Queue: 2, Panic: true, Retries: proxy.RetryStatus{Retries: 3, Refused: 4}, Servers: []proxy.ServerStatus{
				{Addr: "10.0.0.1:80", State: "up", Check: "passing", Requests: 7, Latency: time.Second},
				{Addr: "10.0.0.2:80", State: "ejected", Check: "unchecked", Failures: 5}}},
			{Name: "app"}, // the same name
		}
	}, Stores: func() []stats.Store { return []stats.Store{{Name: "topics"}} }})
	every := slices.Concat(described, describedUpstreams, describedStores)
	for _, d := range every {
		name := strings.Split(d.String(), `"`)[1]
		if f := all[name]; f == nil || f.GetHelp() == "" {
			t.Errorf("%s is not exported, or has no help", name)
		}
	}
	if len(all) != len(every) {
		t.Errorf("%d metrics, %d described", len(all), len(every))
	}
	for _, tt := range []struct {
		name   string
		labels string
		want   float64
	}{
		{"chert_upstream_requests_total", "upstream=app server=10.0.0.1:80", 7},
		{"chert_upstream_failures_total", "upstream=app server=10.0.0.2:80", 5},
		{"chert_upstream_latency_seconds", "upstream=app server=10.0.0.1:80", 1},
		{"chert_upstream_up", "upstream=app server=10.0.0.1:80", 1},
		{"chert_upstream_up", "upstream=app server=10.0.0.2:80", 0},
		{"chert_upstream_queue_length", "upstream=app", 2},
		{"chert_upstream_panic", "upstream=app", 1},
		{"chert_upstream_retries", "upstream=app", 3},
		{"chert_upstream_retries_refused_total", "upstream=app", 4},
		{"http_server_active_requests", "", 5},
		{"chert_requests_total", "network_protocol_version=1.1 http_response_status_class=2xx way=inline", 3},
		{"chert_requests_total", "network_protocol_version=1.0 http_response_status_class=none way=goroutine", 1},
		{"chert_requests_total", "network_protocol_version=2 http_response_status_class=5xx way=direct", 6},
		{"chert_connections", "engine=loop", 4},
		{"chert_connections_speaking", "protocol=event_stream", 1},
		{"chert_connections_refused_total", "reason=address", 2},
		{"chert_timeouts_total", "limit=handshake", 6},
		{"chert_route_requests_total", "http_request_method=GET http_route=/users/{id} http_response_status_class=5xx", 1},
		{"chert_route_runs_total", "http_request_method= http_route=(other) way=pooled", 3},
		{"chert_route_handovers_total", "http_request_method= http_route=", 1},
		{"chert_loop_lag_seconds", "loop=1", 0.001},
		{"chert_loop_stale", "loop=1", 1},
		{"chert_loop_stale", "loop=0", 0},
		{"chert_loop_queue_length", "loop=0 queue=mail", 1},
		{"chert_tls_handshakes_total", "tls_protocol_version=1.3", 2},
	} {
		m := find(t, all[tt.name], strings.Fields(tt.labels)...)
		if got := m.GetCounter().GetValue() + m.GetGauge().GetValue(); got != tt.want {
			t.Errorf("%s{%s} is %v, want %v", tt.name, tt.labels, got, tt.want)
		}
	}
	m := find(t, all["http_server_request_duration_seconds"], "http_request_method=POST", "http_route=example.com/a b")
	if h := m.GetHistogram(); h.GetSampleCount() != 4 || h.GetCreatedTimestamp().AsTime().After(time.Now().Add(-time.Minute)) {
		t.Errorf("%v", h)
	}
	if m := find(t, all["chert_loop_turn_duration_seconds"]); m.GetHistogram().GetSampleCount() != 8 {
		t.Errorf("turns of two loops: %v", m)
	}
}

func TestKeyOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ pattern, method, route, why string }{
		{"GET /users/{id}", "GET", "/users/{id}", "a method"},
		{"/users", "", "/users", "none"},
		{"GET  \t/a", "GET", "/a", "net/http allows more than one space"},
		{"POST example.com/a b", "POST", "example.com/a b", "a host, and a space in the path"},
		{"/a b", "", "/a b", "a space in the path alone"},
		{"", "", "", "no route"},
		{stats.Other, "", "(other)", "beyond the limit"},
		{"GET /\xff", "GET", "/\ufffd", "not UTF-8"},
	} {
		if got := keyOf(tt.pattern); got != (routeKey{tt.method, tt.route}) {
			t.Errorf("%s: %q", tt.why, got)
		}
	}
}

// Patterns that are one series are added, and text that is no UTF-8 harms nothing.
func TestOddNames(t *testing.T) {
	t.Parallel()
	r := stats.Route{Classes: [6]uint64{2: 1}, Ways: [stats.Ways]uint64{1}, Duration: observed(time.Millisecond), Handovers: 1}
	var s stats.Snapshot
	for _, p := range []string{"GET /a", "GET  /a", "GET /\xff", "GET /\xfe"} {
		r.Pattern = p
		s.Routes = append(s.Routes, r)
	}
	s.Malformed = []stats.Count{{Name: "\xff", N: 1}}
	all := gather(t, fake{stats: func() stats.Snapshot { return s }}, nil)
	for _, route := range []string{"/a", "/\ufffd"} {
		if m := find(t, all["http_server_request_duration_seconds"], "http_route="+route); m.GetHistogram().GetSampleCount() != 2 {
			t.Errorf("%s: %v", route, m)
		}
		for name, kind := range map[string]string{"chert_route_requests_total": "http_response_status_class=2xx",
			"chert_route_runs_total": "way=inline", "chert_route_handovers_total": "http_route=" + route} {
			if m := find(t, all[name], "http_route="+route, kind); m.GetCounter().GetValue() != 2 {
				t.Errorf("%s: %s: %v", route, name, m)
			}
		}
	}
	if m := find(t, all["chert_requests_malformed_total"], "reason=\ufffd"); m.GetCounter().GetValue() != 1 {
		t.Error(m)
	}
}

// Series of what an operator wants to be warned of begin at 0: the first error would not be an increase otherwise.
func TestZeros(t *testing.T) {
	t.Parallel()
	s := stats.Snapshot{Requests: []stats.Requests{{Protocol: "HTTP/1.1", Class: 2, Way: stats.Pooled, N: 3}},
		Routes:   []stats.Route{{Pattern: "GET /a", Classes: [6]uint64{2: 3}}},
		Timeouts: []stats.Count{{Name: "idle", N: 4}}}
	all := gather(t, fake{stats: func() stats.Snapshot { return s }}, nil)
	for _, c := range []struct {
		name, labels string
		want         float64
	}{
		{"chert_requests_total", "network_protocol_version=1.1, way=pooled, http_response_status_class=2xx", 3},
		{"chert_requests_total", "network_protocol_version=1.1, way=pooled, http_response_status_class=5xx", 0},
		{"chert_route_requests_total", "http_route=/a, http_response_status_class=5xx", 0},
		{"chert_timeouts_total", "limit=idle", 4},
		{"chert_timeouts_total", "limit=handshake", 0},
		{"chert_connections_refused_total", "reason=too many connections", 0},
		{"chert_connections_refused_total", "reason=too many connections from one address", 0},
	} {
		m := find(t, all[c.name], strings.Split(c.labels, ", ")...)
		if got := m.GetCounter().GetValue(); got != c.want {
			t.Errorf("%s{%s} is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
}

// Classes of status codes that there are not are left out.
func TestClasses(t *testing.T) {
	t.Parallel()
	var s stats.Snapshot
	for _, class := range []int{-1, 5, 6, math.MaxInt} {
		s.Requests = append(s.Requests, stats.Requests{Protocol: "HTTP/1.1", Class: class, N: 1})
	}
	all := gather(t, fake{stats: func() stats.Snapshot { return s }}, nil)["chert_requests_total"]
	n := 0.0
	for _, m := range all.GetMetric() {
		n += m.GetCounter().GetValue()
	}
	if m := find(t, all, "http_response_status_class=5xx"); n != 1 || m.GetCounter().GetValue() != 1 {
		t.Error(n, m)
	}
}

// A sum beyond what a time.Duration has is no negative one.
func TestLongSum(t *testing.T) {
	t.Parallel()
	var h stats.Histogram
	h.Observe(time.Hour, 3_000_000) // more than 292 years
	m := find(t, gather(t, fake{stats: func() stats.Snapshot { return stats.Snapshot{Write: h} }}, nil)["chert_request_stage_duration_seconds"], "stage=write")
	if got := m.GetHistogram().GetSampleSum(); got != 3600*3e6 {
		t.Error(got)
	}
	if h.Mean() != time.Hour {
		t.Error(h.Mean())
	}
}

// Without routes the histogram is that of all requests.
func TestNoRoutes(t *testing.T) {
	t.Parallel()
	all := gather(t, fake{stats: func() stats.Snapshot { return stats.Snapshot{Total: observed(1, 2)} }}, nil)
	if m := find(t, all["http_server_request_duration_seconds"], "http_route="); m.GetHistogram().GetSampleCount() != 2 {
		t.Error(m)
	}
}

func TestClassicBuckets(t *testing.T) {
	t.Parallel()
	all := classicBuckets(nil)
	if len(all) != 19 || !slices.IsSorted(all) {
		t.Fatalf("%d buckets", len(all))
	}
	want := 10 * time.Microsecond
	for i, b := range all {
		got, ok := stats.Bound(b)
		conventional := want * []time.Duration{10, 25, 50}[i%3] / 10
		if r := float64(got) / float64(conventional); !ok || r < 1/1.1 || r > 1.1 {
			t.Errorf("%v for %v", got, conventional)
		}
		if i%3 == 2 {
			want *= 10
		}
	}
	if got := classicBuckets([]time.Duration{time.Hour, -1, time.Second, time.Second}); len(got) != 3 || got[0] != 0 || got[2] != stats.Buckets-2 {
		t.Errorf("the bounds of no bucket: %v", got)
	}
}

// Both kinds of buckets are those of the durations themselves.
func TestHistogram(t *testing.T) {
	t.Parallel()
	var h stats.Histogram
	var all []float64
	add := func(d time.Duration) {
		h.Observe(d, 1)
		all = append(all, d.Seconds())
	}
	for range 2000 {
		add(time.Duration(math.Exp2(rand.Float64() * 38))) // 1 ns to 274 s
	}
	for i := range stats.Buckets - 1 { // at the bounds
		d, _ := stats.Bound(i)
		add(d)
		add(d + 1)
	}
	m := find(t, gather(t, fake{stats: func() stats.Snapshot { return stats.Snapshot{Write: h} }}, nil)["chert_request_stage_duration_seconds"], "stage=write")
	got := m.GetHistogram()
	upTo := func(bound float64) (n uint64) {
		for _, v := range all {
			if v <= bound {
				n++
			}
		}
		return n
	}
	if got.GetSampleCount() != uint64(len(all)) || math.Abs(got.GetSampleSum()-h.Sum.Seconds()) > 1e-6 {
		t.Errorf("%d, %v", got.GetSampleCount(), got.GetSampleSum())
	}
	for _, b := range got.GetBucket() {
		if want := upTo(b.GetUpperBound()); b.GetCumulativeCount() != want {
			t.Errorf("up to %v: %d, want %d", b.GetUpperBound(), b.GetCumulativeCount(), want)
		}
	}
	if got.GetSchema() != 2 || got.GetZeroCount() != upTo(got.GetZeroThreshold()) {
		t.Errorf("%d up to %v, want %d", got.GetZeroCount(), got.GetZeroThreshold(), upTo(got.GetZeroThreshold()))
	}
	sum, index, count, d := got.GetZeroCount(), int32(0), int64(0), 0
	for _, span := range got.GetPositiveSpan() {
		index += span.GetOffset()
		for range span.GetLength() {
			count += got.GetPositiveDelta()[d]
			sum += uint64(count)
			bound := math.Exp2(float64(index) / 4)
			if bound > 129 {
				bound = math.Inf(1) // of the last bucket
			}
			if want := upTo(bound); count > 0 && sum != want {
				t.Errorf("up to index %d: %d, want %d", index, sum, want)
			}
			d++
			index++
		}
	}
	if sum != uint64(len(all)) {
		t.Errorf("native buckets have %d", sum)
	}
}

// Scrapes at the same time share one snapshot, and so do those that follow soon.
func TestMaxAge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		maxAge time.Duration
		want   int64
		why    string
	}{
		{time.Hour, 1, "all share one"},
		{-1, 50, "none is shared"},
		{1, 50, "one after the other, each is too old for the next"},
	} {
		var calls atomic.Int64
		c := NewCollector(fake{stats: func() stats.Snapshot {
			calls.Add(1)
			return full()
		}}, &Options{MaxAge: tt.maxAge})
		scrape := func() {
			ch := make(chan prometheus.Metric, 10000)
			if c.Collect(ch); len(ch) == 0 {
				t.Error("nothing")
			}
		}
		var wg sync.WaitGroup
		for range 50 {
			if tt.maxAge == 1 {
				scrape()
			} else {
				wg.Go(scrape)
			}
		}
		wg.Wait()
		if n := calls.Load(); n != tt.want {
			t.Errorf("%s: %d snapshots, want %d", tt.why, n, tt.want)
		}
	}
	if c := NewCollector(busyServer(), nil).(*collector); c.maxAge != defaultMaxAge {
		t.Errorf("by default %v", c.maxAge)
	}
}

// scrape returns what h sends to a client that accepts this.
func scrape(t *testing.T, h http.Handler, accept string) string {
	t.Helper()
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

const openMetrics = "application/openmetrics-text;version=1.0.0"

func TestHandler(t *testing.T) {
	t.Parallel()
	own := prometheus.NewRegistry()
	own.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "app_orders_total", Help: "Orders."}, func() float64 { return 7 }))
	text := scrape(t, Handler(busyServer(), &Options{Gatherer: own}), "text/plain")
	for _, want := range []string{
		`http_server_request_duration_seconds_bucket{http_request_method="GET",http_route="/users/{id}",le="+Inf"} 4`,
		"app_orders_total 7", "go_goroutines ", "process_", "promhttp_metric_handler_errors_total",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if text := scrape(t, Handler(busyServer(), &Options{NoRuntime: true}), "text/plain"); strings.Contains(text, "\ngo_") || strings.Contains(text, "\nprocess_") {
		t.Errorf("metrics of the runtime in\n%s", text)
	}
	if text := scrape(t, Handler(busyServer(), nil), openMetrics); !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("no OpenMetrics:\n%s", text)
	}
}

// A metric of the program that fails is logged, and the others are sent.
func TestHandlerError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	bad := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, fmt.Errorf("no database") })
	h := Handler(busyServer(), &Options{Gatherer: bad, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if text := scrape(t, h, "text/plain"); !strings.Contains(text, "\nchert_requests_total{") {
		t.Errorf("got\n%s", text)
	}
	if !strings.Contains(log.String(), "no database") {
		t.Errorf("log: %s", &log)
	}
}

func TestExemplars(t *testing.T) {
	t.Parallel()
	var e Exemplars
	trace, span := [16]byte{1}, [8]byte{2}
	e.Observe("GET /a", 10*time.Millisecond, [16]byte{9}, span) // the next is later
	e.Observe("GET /a", 10*time.Millisecond+1, trace, span)
	e.Observe("GET /a", time.Second, trace, span)           // counted by no histogram
	e.Observe("GET /b", 200*time.Second, trace, span)       // beyond all bounds
	e.Observe("GET /new", 10*time.Millisecond, trace, span) // beyond the server's limit
	e.Observe("GET /d", time.Millisecond, [16]byte{9}, span)
	e.Observe("GET  /d", time.Millisecond+1, trace, span) // the same series, and later
	s := stats.Snapshot{Routes: []stats.Route{
		{Pattern: "GET /a", Duration: observed(10*time.Millisecond, 20*time.Millisecond)},
		{Pattern: "GET /b", Duration: observed(200 * time.Second)},
		{Pattern: stats.Other, Duration: observed(10 * time.Millisecond)},
		{Pattern: "GET /c", Duration: observed(10 * time.Millisecond)},
		{Pattern: "GET /d", Duration: observed(time.Millisecond)},
	}}
	o := &Options{Exemplars: &e, NoRuntime: true}
	src := fake{stats: func() stats.Snapshot { return s }}
	all := gather(t, src, o)["http_server_request_duration_seconds"]
	for route, want := range map[string]int{"/a": 1, "/b": 1, "(other)": 1, "/c": 0, "/d": 1} {
		var found []*dto.Exemplar
		h := find(t, all, "http_route="+route).GetHistogram()
		last := 0.0
		for _, b := range h.GetBucket() {
			if x := b.GetExemplar(); x != nil {
				found = append(found, x)
				if v := x.GetValue(); v <= last || v > b.GetUpperBound() {
					t.Errorf("%s: %v is not in the bucket up to %v", route, v, b.GetUpperBound())
				}
			}
			last = b.GetUpperBound()
		}
		if len(found) != want || len(h.GetExemplars()) != want {
			t.Errorf("%s: %v, native %v", route, found, h.GetExemplars())
		}
	}
	text := scrape(t, Handler(src, o), openMetrics)
	const id = `trace_id="01000000000000000000000000000000"`
	if n := strings.Count(text, " # {"); n != 4 || strings.Count(text, id) != 4 || strings.Count(text, `span_id="0200000000000000"`) != 4 {
		t.Errorf("%d exemplars in\n%s", n, text)
	}
}

// Memory is bounded: whatever patterns there are, and old traces are not shown.
func TestExemplarsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e Exemplars
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for j := range 500 {
					e.Observe(fmt.Sprint(i, j), time.Duration(j)*time.Millisecond, [16]byte{1}, [8]byte{})
				}
			})
		}
		wg.Wait()
		if n := len(e.routes); n > maxPatterns+1 || e.routes[stats.Other] == nil {
			t.Errorf("%d routes", n)
		}
		h := observed(0, time.Millisecond)
		asked := 0
		one := e.by(func(string) routeKey { asked++; return routeKey{} })[routeKey{}]
		if asked != len(e.routes) {
			t.Errorf("%d of %d patterns were looked at", asked, len(e.routes))
		}
		classic := classicBuckets(nil)
		if n := len(one.of(&h, classic)); n != 2 {
			t.Errorf("%d exemplars", n)
		}
		time.Sleep(maxExemplarAge + time.Second)
		if n := len(one.of(&h, classic)); n != 0 {
			t.Errorf("%d exemplars that are old", n)
		}
	})
}

// need skips a test without a program, of a package of Debian's.
func need(t *testing.T, program, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatalf("no %s; install the package %s", program, pkg)
		}
		t.Skipf("no %s; install the package %s", program, pkg)
	}
}

// What Prometheus's own linter says.
func TestPromtool(t *testing.T) {
	t.Parallel()
	need(t, "promtool", "prometheus")
	// Go's collector has names of its own that the linter may not like.
	for name, text := range map[string]string{
		"all":     scrape(t, Handler(busyServer(), nil), "text/plain"),
		"nothing": scrape(t, Handler(fake{stats: func() stats.Snapshot { return stats.Snapshot{} }}, nil), "text/plain"),
	} {
		cmd := exec.Command("promtool", "check", "metrics")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func BenchmarkScrape(b *testing.B) {
	scrapes(b, busyServer(), &Options{MaxAge: time.Hour, NoRuntime: true})
}

// As many routes as a server counts, each with a trace in each bucket.
func BenchmarkScrapeExemplars(b *testing.B) {
	var s stats.Snapshot
	var e Exemplars
	for i := range maxPatterns {
		r := stats.Route{Pattern: fmt.Sprintf("GET /%d/{id}", i)}
		for d := 10 * time.Microsecond; d < 10*time.Second; d = d * 6 / 5 {
			r.Duration.Observe(d, 1)
			e.Observe(r.Pattern, d, [16]byte{1}, [8]byte{2})
		}
		s.Routes = append(s.Routes, r)
	}
	scrapes(b, fake{stats: func() stats.Snapshot { return s }}, &Options{NoRuntime: true, Exemplars: &e})
}

func scrapes(b *testing.B, src stats.Source, o *Options) {
	h := Handler(src, o)
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		w.Body = nil
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	}
}

// TestStores exports the state of stores; of two with one name the first one counts.
func TestStores(t *testing.T) {
	t.Parallel()
	all := gather(t, busyServer(), &Options{Stores: func() []stats.Store {
		return []stats.Store{
			{Name: "topics", Streams: 3, Read: 5, Published: 4, Failed: 2, Waiting: 1, Cuts: 7, Gaps: 6},
			{Name: "rooms", Away: true},
			{Name: "rooms"},
		}
	}})
	for name, want := range map[string]string{
		"chert_store_up": "rooms 0, topics 1", "chert_store_streams": "rooms 0, topics 3",
		"chert_store_events_read_total": "rooms 0, topics 5", "chert_store_events_published_total": "rooms 0, topics 4",
		"chert_store_events_failed_total": "rooms 0, topics 2", "chert_store_events_waiting": "rooms 0, topics 1",
		"chert_store_connections_ended_total": "rooms 0, topics 7", "chert_store_gaps_total": "rooms 0, topics 6",
	} {
		var got []string
		for _, m := range all[name].GetMetric() {
			got = append(got, fmt.Sprint(m.GetLabel()[0].GetValue(), " ", m.GetGauge().GetValue()+m.GetCounter().GetValue()))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
}
