// Package metrics exports what a server has counted to Prometheus:
//
//	http.Handle("/metrics", metrics.Handler(srv, nil)) // srv is a *chert.Server
//
// Names and labels of requests are those of OpenTelemetry's semantic conventions in
// Prometheus's spelling, such as http_server_request_duration_seconds; what is
// particular to chert begins with chert_. Histograms are classic ones and, for a
// Prometheus that asks for them, native ones of schema 2. docs/observability/metrics.md
// lists all.
//
// Serve it on an address that clients cannot reach: it says much about a server.
package metrics

// The package knows stats, not the server, so that whatever is a stats.Source can be
// exported. It needs client_golang, which only programs get that import it.
