package metrics

import "github.com/chert-http/chert/proxy"

// What a proxy knows about its upstreams. The label server is the address of one.
var (
	upstreamRequests = desc("chert_upstream_requests_total", "Tries of requests that a server got.", "upstream",
		"server")
	upstreamFailures = desc("chert_upstream_failures_total", "Tries that failed because of the server.", "upstream",
		"server")
	upstreamDials = desc("chert_upstream_connections_opened_total", "Connections that were opened to a server.",
		"upstream", "server")
	upstreamReused = desc("chert_upstream_connections_reused_total",
		"Tries on a connection that had carried a request before.", "upstream", "server")
	upstreamEjections = desc("chert_upstream_ejections_total", "How often a server was ejected.", "upstream", "server")
	upstreamActive    = desc("chert_upstream_requests_active", "Requests that a server has now.", "upstream", "server")
	upstreamIdle      = desc("chert_upstream_connections_idle", "Connections to a server that are kept.", "upstream",
		"server")
	upstreamLatency = desc("chert_upstream_latency_seconds",
		"Average time until a server's response began, of the last seconds.", "upstream", "server")
	upstreamUp = desc("chert_upstream_up",
		"1 if a server gets requests: it is not ejected, its checks do not fail, and it is not draining.", "upstream",
		"server")
	upstreamQueued = desc("chert_upstream_queue_length", "Requests that wait for a server.", "upstream")
	upstreamPanic  = desc("chert_upstream_panic",
		"1 if so few servers are up that ejections are ignored.", "upstream")
	upstreamRetries = desc("chert_upstream_retries", "Tries after the first one, of the last 10 s.", "upstream")
	upstreamRefused = desc("chert_upstream_retries_refused_total",
		"Retries that the budget did not permit.", "upstream")
)

// upstreams exports what a proxy knows. Two upstreams of one name, which a program may have,
// would be the same series: the first one counts.
func (o *sink) upstreams(all []proxy.UpstreamStatus) {
	seen := make(map[string]bool, len(all))
	for i := range all {
		u := &all[i]
		name := valid(u.Name)
		if seen[name] {
			continue
		}
		seen[name] = true
		o.gauge(upstreamQueued, int64(u.Queue), name)
		o.gauge(upstreamPanic, number(u.Panic), name)
		o.gauge(upstreamRetries, int64(u.Retries.Retries), name)
		o.counter(upstreamRefused, u.Retries.Refused, name)
		for j := range u.Servers {
			s := &u.Servers[j]
			addr := valid(s.Addr)
			o.counter(upstreamRequests, s.Requests, name, addr)
			o.counter(upstreamFailures, s.Failures, name, addr)
			o.counter(upstreamDials, s.Dials, name, addr)
			o.counter(upstreamReused, s.Reused, name, addr)
			o.counter(upstreamEjections, s.Ejections, name, addr)
			o.gauge(upstreamActive, s.InFlight, name, addr)
			o.gauge(upstreamIdle, s.Idle, name, addr)
			o.value(upstreamLatency, s.Latency.Seconds(), name, addr)
			o.gauge(upstreamUp, number(s.State != "ejected" && s.Check != "failing" && !s.Draining), name, addr)
		}
	}
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
