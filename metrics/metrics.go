package metrics

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/chert-http/chert/proxy"
	"github.com/chert-http/chert/stats"
)

// Options are the options of Handler and NewCollector.
type Options struct {
	// MaxAge is how old a snapshot of the server may be: scrapes within that time
	// share one. Default 500 ms; negative: none is shared.
	MaxAge time.Duration
	// Buckets are the upper bounds of classic histograms, each rounded to the nearest
	// one that the server counts by: at most 9 % off, from 119 ns to 128 s. Default: 1,
	// 2.5 and 5 of each power of ten from 10 us to 10 s. Native histograms have all.
	Buckets []time.Duration
	// Exemplars, if not nil, has traces for http_server_request_duration_seconds.
	Exemplars *Exemplars
	// Upstreams returns the state of those that the program forwards to, such as
	// proxy.Pool.Status. Default: no metrics of them.
	Upstreams func() []proxy.UpstreamStatus
	// Stores returns the state of the stores through which the program shares topics and
	// rooms, such as that of redistopic.Store.Stats. Default: no metrics of them.
	Stores func() []stats.Store
	// Gatherer, if not nil, has further metrics, which Handler exports too.
	Gatherer prometheus.Gatherer
	// NoRuntime leaves out the metrics of Go's runtime and of the process, for a
	// Gatherer that has them, as prometheus.DefaultGatherer does. Only Handler
	// exports them.
	NoRuntime bool
	// Logger receives errors of Gatherer and of writing responses; nil: slog.Default.
	Logger *slog.Logger
}

const defaultMaxAge = 500 * time.Millisecond

// Handler returns a handler that responds with the metrics of src, of Go's runtime
// and of the process, in the format that the client prefers. o may be nil. It is
// safe for concurrent use.
func Handler(src stats.Source, o *Options) http.Handler {
	if o == nil {
		o = &Options{}
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewCollector(src, o))
	if !o.NoRuntime {
		reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	all := prometheus.Gatherers{reg}
	if o.Gatherer != nil {
		all = append(all, o.Gatherer)
	}
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{
		Registry: reg,
		ErrorLog: errorLog{o.Logger},
		// One metric of the program that is wrong must not hide the server's.
		ErrorHandling:     promhttp.ContinueOnError,
		EnableOpenMetrics: true, // exemplars need it
	})
}

// errorLog is a promhttp.Logger.
type errorLog struct{ to *slog.Logger }

func (l errorLog) Println(v ...any) {
	to := l.to
	if to == nil {
		to = slog.Default()
	}
	to.Error("metrics", "error", fmt.Sprint(v...))
}

// A collector is a prometheus.Collector of one server.
type collector struct {
	src       stats.Source
	maxAge    time.Duration
	classic   []int // buckets of stats whose bounds classic histograms have, ascending
	exemplars *Exemplars
	upstreams func() []proxy.UpstreamStatus // nil for none
	stores    func() []stats.Store          // the same

	mu   sync.Mutex // held during Stats, so that concurrent scrapes wait for one
	last stats.Snapshot
	at   time.Time // when last was taken; zero before that
}

// NewCollector returns a collector of the metrics of src, for a registry of the
// caller's. Two servers in one registry need labels, by prometheus.WrapRegistererWith,
// of a name that their metrics do not have: "listener" is free, but "server" is the
// label of a server of Options.Upstreams. o may be nil. It is safe for concurrent use.
func NewCollector(src stats.Source, o *Options) prometheus.Collector {
	if o == nil {
		o = &Options{}
	}
	c := &collector{src: src, maxAge: o.MaxAge, exemplars: o.Exemplars, upstreams: o.Upstreams,
		stores: o.Stores, classic: classicBuckets(o.Buckets)}
	if c.maxAge == 0 {
		c.maxAge = defaultMaxAge
	}
	return c
}

// Describe implements prometheus.Collector. What is never collected is not described: its
// labels would be taken for nothing.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	all := described
	if c.upstreams != nil {
		all = slices.Concat(all, describedUpstreams)
	}
	if c.stores != nil {
		all = slices.Concat(all, describedStores)
	}
	for _, d := range all {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.snapshot()
	out := &sink{ch: ch, since: s.Since, classic: c.classic}
	out.requests(&s)
	out.routes(&s, c.exemplars)
	out.connections(&s)
	out.loops(&s)
	out.tls(&s.TLS)
	if c.upstreams != nil {
		out.upstreams(c.upstreams())
	}
	if c.stores != nil {
		out.stores(c.stores())
	}
}

// snapshot returns one that is at most maxAge old. The result shares its slices with
// other callers.
func (c *collector) snapshot() stats.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || c.maxAge < 0 || time.Since(c.at) > c.maxAge {
		c.last = c.src.Stats()
		c.at = time.Now()
	}
	return c.last
}
