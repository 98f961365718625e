package metrics

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chert-http/chert/stats"
)

// The metrics of a collector, for Describe: of the server, of upstreams, and of stores.
var described, describedUpstreams, describedStores []*prometheus.Desc

func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	switch {
	case strings.HasPrefix(name, "chert_upstream_"):
		describedUpstreams = append(describedUpstreams, d)
	case strings.HasPrefix(name, "chert_store_"):
		describedStores = append(describedStores, d)
	default:
		described = append(described, d)
	}
	return d
}

// Labels of OpenTelemetry's conventions.
const (
	methodLabel  = "http_request_method"
	routeLabel   = "http_route"
	versionLabel = "network_protocol_version"
	// The conventions have the status code, which the server does not count: the name
	// says that this is less.
	classLabel = "http_response_status_class"
)

// Requests.
var (
	duration = desc("http_server_request_duration_seconds",
		"Time from a request's first byte until its response was passed to the socket or its queue, by the method and "+
			"the path of the route's pattern. GET includes HEAD.",
		methodLabel, routeLabel)
	active = desc("http_server_active_requests",
		"Requests whose handlers run on goroutines, and requests that wait. Those that loops run at that moment are "+
			"not seen.")
	requests = desc("chert_requests_total",
		"Requests that have ended, by version of HTTP, class of the status code (none: no response was sent) and "+
			"where the handler ran.",
		versionLabel, classLabel, "way")
	running   = desc("chert_handlers_running", "Handlers that run on goroutines, or have lost their loop.")
	waiting   = desc("chert_requests_waiting", "Requests that wait for a slot (Server.MaxHandlers).")
	malformed = desc("chert_requests_malformed_total", "Requests that were refused before a handler ran, by reason.",
		"reason")
	timeouts = desc("chert_timeouts_total",
		"Connections and requests that ended because a limit of time was exceeded, by limit.", "limit")
	stage = desc("chert_request_stage_duration_seconds",
		"Time in the stages of requests: head (until it was complete, if it took several reads), wait (for a slot or "+
			"a goroutine), handler, write (until a slow client had accepted the rest).",
		"stage")
)

// Routes.
var (
	routeRequests = desc("chert_route_requests_total",
		"Requests that have ended, by route and class of the status code.", methodLabel, routeLabel, classLabel)
	routeWays = desc("chert_route_runs_total", "Requests that have ended, by route and where the handler ran.",
		methodLabel, routeLabel, "way")
	routeHandovers = desc("chert_route_handovers_total",
		"Handlers that took a loop so long that it went on without them, by route.", methodLabel, routeLabel)
	routeDemotions = desc("chert_route_demotions_total", "How often a route has ceased to run on loops.", methodLabel,
		routeLabel)
)

// requests exports what is not by route.
func (o *sink) requests(s *stats.Snapshot) {
	o.gauge(active, s.Running+s.Waiting)
	o.gauge(running, s.Running)
	o.gauge(waiting, s.Waiting)
	type kind struct {
		version string
		way     stats.Way
	}
	kinds := make(map[kind]*[classes]uint64)
	for _, r := range s.Requests {
		k := kind{version(r.Protocol), r.Way}
		if kinds[k] == nil {
			kinds[k] = new([classes]uint64)
		}
		if r.Class >= 0 && r.Class < classes { // a Source of another program may have more
			kinds[k][r.Class] += r.N
		}
	}
	for k, all := range kinds {
		for i, n := range all {
			o.counter(requests, n, k.version, class(i), k.way.String())
		}
	}
	o.counts(malformed, s.Malformed)
	o.counts(timeouts, s.Timeouts, "head", "read", "write", "idle", "stall", "ping", "handshake")
	for _, h := range []struct {
		name string
		h    *stats.Histogram
	}{{"head", &s.Head}, {"wait", &s.Wait}, {"handler", &s.Handler}, {"write", &s.Write}} {
		o.histogram(stage, h.h, nil, h.name)
	}
	o.counts(syscalls, s.Syscalls)
	o.counter(bytesRead, s.BytesRead)
	o.counter(bytesWritten, s.BytesWritten)
	o.gauge(buffers, s.Buffers)
	o.gauge(bufferBytes, s.BufferBytes)
	o.counter(proofs, s.Placement.Proofs)
	o.counter(demotions, s.Placement.Demotions)
}

// A routeKey are the labels of a route.
type routeKey struct{ method, route string }

// keyOf splits a pattern of net/http, "[METHOD ][HOST]/[PATH]".
func keyOf(pattern string) routeKey {
	if method, rest, ok := strings.Cut(pattern, " "); ok && !strings.ContainsAny(method, "/(") {
		return routeKey{valid(method), valid(strings.TrimLeft(rest, " \t"))}
	}
	return routeKey{"", valid(pattern)}
}

// routes exports what is by route.
func (o *sink) routes(s *stats.Snapshot, exemplars *Exemplars) {
	all := s.Routes
	if len(all) == 0 {
		all = []stats.Route{{Pattern: stats.NoRoute, Duration: s.Total}}
	}
	// Patterns that differ only in what keyOf removes are one series.
	merged := make(map[routeKey]*stats.Route, len(all))
	for i := range all {
		r, k := &all[i], keyOf(all[i].Pattern)
		if m := merged[k]; m != nil {
			merge(m, r)
		} else {
			merged[k] = new(*r)
		}
	}
	traced := exemplars.by(func(pattern string) routeKey {
		if k := keyOf(pattern); merged[k] != nil {
			return k
		}
		return keyOf(stats.Other)
	})
	for k, r := range merged {
		o.histogram(duration, &r.Duration, traced[k].of(&r.Duration, o.classic), k.method, k.route)
		for i, n := range r.Classes {
			o.counter(routeRequests, n, k.method, k.route, class(i))
		}
		for w, n := range r.Ways {
			if n > 0 {
				o.counter(routeWays, n, k.method, k.route, stats.Way(w).String())
			}
		}
		o.counter(routeHandovers, r.Handovers, k.method, k.route)
		o.counter(routeDemotions, r.Demotions, k.method, k.route)
	}
}

// merge adds what b has counted to a.
func merge(a, b *stats.Route) {
	for i, n := range b.Classes {
		a.Classes[i] += n
	}
	for i, n := range b.Ways {
		a.Ways[i] += n
	}
	a.Duration.Merge(&b.Duration)
	a.Handovers += b.Handovers
	a.Demotions += b.Demotions
}

// classes is how many classes of status codes there are.
const classes = len(stats.Route{}.Classes)

// class returns the label of a status code's first digit.
func class(digit int) string {
	if digit == 0 {
		return "none"
	}
	return strconv.Itoa(digit) + "xx"
}

// version returns network.protocol.version of "HTTP/1.1": "1.1". That of HTTP/2 is
// "2".
func version(protocol string) string {
	v := strings.TrimPrefix(protocol, "HTTP/")
	if major, ok := strings.CutSuffix(v, ".0"); ok && major != "1" {
		return major
	}
	return v
}

// valid makes a label of text: one that is not valid UTF-8 is an error.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// A sink sends metrics to a registry.
type sink struct {
	ch      chan<- prometheus.Metric
	since   time.Time // when the server began to count
	classic []int
}

func (o *sink) counter(d *prometheus.Desc, n uint64, labels ...string) {
	m, err := prometheus.NewConstMetricWithCreatedTimestamp(d, prometheus.CounterValue, float64(n), o.since, labels...)
	o.send(d, m, err)
}

func (o *sink) gauge(d *prometheus.Desc, n int64, labels ...string) {
	o.value(d, float64(n), labels...)
}

func (o *sink) value(d *prometheus.Desc, v float64, labels ...string) {
	m, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, v, labels...)
	o.send(d, m, err)
}

// counts sends counters of kinds of events. Those that are known are 0 if there was none: the first event of a series
// which begins with it is not seen by rate.
func (o *sink) counts(d *prometheus.Desc, all []stats.Count, known ...string) {
	for _, name := range known {
		if !slices.ContainsFunc(all, func(c stats.Count) bool { return c.Name == name }) {
			o.counter(d, 0, name)
		}
	}
	for _, c := range all {
		o.counter(d, c.N, valid(c.Name))
	}
}

func (o *sink) histogram(d *prometheus.Desc, h *stats.Histogram, exemplars []prometheus.Exemplar, labels ...string) {
	m, err := newHistogram(d, h, o.classic, o.since, labels)
	if err == nil && len(exemplars) > 0 {
		m, err = prometheus.NewMetricWithExemplars(m, exemplars...)
	}
	o.send(d, m, err)
}

func (o *sink) send(d *prometheus.Desc, m prometheus.Metric, err error) {
	if err != nil {
		m = prometheus.NewInvalidMetric(d, err)
	}
	o.ch <- m
}
