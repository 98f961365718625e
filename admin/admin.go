package admin

import (
	"io"
	"net/http"
	"time"

	"github.com/chert-http/chert/proxy"
	"github.com/chert-http/chert/stats"
)

// Options configure the handler. The zero value serves everything but /metrics.
type Options struct {
	// Metrics serves /metrics, such as a handler of package metrics. Default none:
	// 404.
	Metrics http.Handler
	// Ready reports whether /readyz answers 200, or 503. It must be safe for
	// concurrent use. Default: always ready.
	Ready func() bool
	// Title is shown on the page, such as the program's name. Default "chert".
	Title string
	// Version is shown on the page, such as the program's. Default none.
	Version string
	// Setup returns what the server has been set up to do, to be shown on the page. It must
	// be safe for concurrent use. Default nothing is shown.
	Setup func() Setup
	// Upstreams returns the state of those that the program forwards to, such as
	// proxy.Pool.Status, to be shown on the page. It must be safe for concurrent use.
	// Default nothing is shown.
	Upstreams func() []proxy.UpstreamStatus
	// Stores returns the state of the stores through which the program shares topics and rooms,
	// as their Stats methods do, to be shown on the page. It must be safe for concurrent use.
	// Default nothing is shown.
	Stores func() []stats.Store
	// Hosts are names that requests may have in Host, without a port, beside
	// localhost, names that end in ".localhost", and IP addresses. Without them any
	// name is accepted on listeners that are not on a loopback address.
	Hosts []string
}

// handler is the http.Handler that New returns. It is safe for concurrent use.
type handler struct {
	source stats.Source
	opts   Options
	mux    *http.ServeMux
	guard  guard
	events events
	// costly has a value for each profile that is being taken: one at most.
	costly chan struct{}
}

// New returns a handler that shows a server. It asks source only while it is asked
// itself, and once a second while anybody watches the page.
func New(source stats.Source, o *Options) http.Handler {
	h := &handler{source: source, mux: http.NewServeMux(), costly: make(chan struct{}, 1)}
	if o != nil {
		h.opts = *o
	}
	if h.opts.Title == "" {
		h.opts.Title = "chert"
	}
	h.guard.add(h.opts.Hosts)
	h.events = events{source: source, every: time.Second}
	h.route("/{$}", h.page)
	h.route("/style.css", asset("text/css; charset=utf-8", style))
	h.route("/script.js", asset("text/javascript; charset=utf-8", script))
	h.route("/stats", h.stats)
	h.route("/setup", h.setup)
	h.route("/upstreams", h.upstreams)
	h.route("/events", h.events.serve)
	h.route("/healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	h.route("/readyz", h.ready)
	h.route("/debug/requests", h.requests)
	h.route("/debug/connections", h.connections)
	h.route("/debug/pprof/{$}", h.profiles)
	h.route("/debug/pprof/{name}", h.profile)
	if h.opts.Metrics != nil {
		h.mux.Handle("GET /metrics", h.opts.Metrics)
	}
	return h
}

func (h *handler) route(path string, f http.HandlerFunc) { h.mux.HandleFunc("GET "+path, f) }

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Content-Security-Policy", policy)
	if status, text := h.guard.check(r); status != 0 {
		if status == http.StatusMethodNotAllowed {
			head.Set("Allow", "GET, HEAD")
		}
		plain(w, status, text)
		return
	}
	h.mux.ServeHTTP(w, r)
}

func (h *handler) ready(w http.ResponseWriter, _ *http.Request) {
	if h.opts.Ready != nil && !h.opts.Ready() {
		plain(w, http.StatusServiceUnavailable, "draining")
		return
	}
	plain(w, http.StatusOK, "ready")
}

// plain answers with a line of text.
func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	io.WriteString(w, text+"\n")
}
