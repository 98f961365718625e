package metrics

import (
	"strconv"

	"github.com/chert-http/chert/stats"
)

// What the server does beside requests: connections, loops, TLS.

// Connections.
var (
	accepted = desc("chert_connections_accepted_total", "Connections that were admitted.")
	closed   = desc("chert_connections_closed_total", "Admitted connections that have ended or were hijacked.")
	hijacked = desc("chert_connections_hijacked_total", "Connections that handlers have taken over.")
	refused  = desc("chert_connections_refused_total", "Connections that were closed by a limit at once, by reason.",
		"reason")
	connections = desc("chert_connections", "Open connections, by what drives them: loop or goroutine.", "engine")
	busy        = desc("chert_connections_active", "Open connections with a request in progress, or part of one.")
	protocols   = desc("chert_connections_speaking",
		"Open connections by protocol: http1, http2, http3, websocket, event_stream. The last two may be streams of "+
			"http2 and http3 and are then counted twice.", "protocol")
)

// The server's own work.
var (
	bytesRead    = desc("chert_socket_read_bytes_total", "Bytes read from sockets, TLS included.")
	bytesWritten = desc("chert_socket_written_bytes_total", "Bytes written to sockets, TLS included.")
	syscalls     = desc("chert_syscalls_total", "System calls of the server itself, by kind.", "syscall")
	buffers      = desc("chert_buffers", "Pooled buffers in use.")
	bufferBytes  = desc("chert_buffers_bytes", "Size of the pooled buffers in use.")
	proofs       = desc("chert_placement_proofs_total",
		"Routes and paths that were found to be quick enough for loops.")
	demotions = desc("chert_placement_demotions_total", "Routes and paths that have lost that.")
)

// Loops.
var (
	loopTurns    = desc("chert_loop_turns_total", "How often a loop has waited for events.", "loop")
	loopEvents   = desc("chert_loop_events_total", "Events that a loop got.", "loop")
	loopRequests = desc("chert_loop_requests_total", "Requests of a loop's connections, by where the handler ran.",
		"loop", "way")
	loopHandovers = desc("chert_loop_handovers_total",
		"Handlers that took a loop so long that it went on without them.", "loop")
	loopYields = desc("chert_loop_yields_total",
		"Handlers that were about to wait, so that the loop went on without them.", "loop")
	loopConnections = desc("chert_loop_connections", "Connections that a loop drives.", "loop")
	loopGoroutines  = desc("chert_loop_goroutines", "Pooled goroutines of a loop: working or spare.", "loop", "state")
	loopQueued      = desc("chert_loop_queue_length",
		"What waited for a loop when it was asked: mail (messages) and requeued (connections).", "loop", "queue")
	loopLag   = desc("chert_loop_lag_seconds", "How long a loop took to answer when it was asked.", "loop")
	loopStale = desc("chert_loop_stale", "1 if a loop did not answer in time: its other values are those of before.",
		"loop")
	loopTurn = desc("chert_loop_turn_duration_seconds",
		"Time that a loop was busy between two waits, of one turn in 64.")
)

// TLS.
var (
	handshakes        = desc("chert_tls_handshakes_total", "Finished handshakes, by version.", "tls_protocol_version")
	handshakesResumed = desc("chert_tls_handshakes_resumed_total", "Finished handshakes that resumed a session.")
	earlyRequests     = desc("chert_tls_early_requests_total",
		"Requests that ran before the handshake had finished (0-RTT).")
	handshakesFailed  = desc("chert_tls_handshakes_failed_total", "Handshakes that ended with an error.")
	handshakesRunning = desc("chert_tls_handshakes_running", "Handshakes in progress on goroutines.")
	handshakesWaiting = desc("chert_tls_handshakes_waiting", "Handshakes that wait for their turn.")
	handshakeDuration = desc("chert_tls_handshake_duration_seconds",
		"Time from the accept to the end of finished handshakes.")
)

func (o *sink) connections(s *stats.Snapshot) {
	c := &s.Connections
	o.counter(accepted, c.Accepted)
	o.counter(closed, c.Closed)
	o.counter(hijacked, c.Hijacked)
	o.counts(refused, c.Refused, "too many connections", "too many connections from one address")
	o.gauge(connections, c.Loops, "loop")
	o.gauge(connections, c.Goroutines, "goroutine")
	o.gauge(busy, c.Active)
	o.gauge(protocols, c.HTTP1, "http1")
	o.gauge(protocols, c.HTTP2, "http2")
	o.gauge(protocols, c.HTTP3, "http3")
	o.gauge(protocols, c.WebSockets, "websocket")
	o.gauge(protocols, c.EventStreams, "event_stream")
}

func (o *sink) loops(s *stats.Snapshot) {
	var turns stats.Histogram
	for i := range s.Loops {
		l, name := &s.Loops[i], strconv.Itoa(i)
		o.counter(loopTurns, l.Turns, name)
		o.counter(loopEvents, l.Events, name)
		o.counter(loopRequests, l.Inline, name, stats.Inline.String())
		o.counter(loopRequests, l.Pooled, name, stats.Pooled.String())
		o.counter(loopRequests, l.Direct, name, stats.Direct.String())
		o.counter(loopHandovers, l.Handovers, name)
		o.counter(loopYields, l.Yields, name)
		o.gauge(loopConnections, l.Connections, name)
		o.gauge(loopGoroutines, l.AtWork, name, "working")
		o.gauge(loopGoroutines, l.Spare, name, "spare")
		o.gauge(loopQueued, l.Mail, name, "mail")
		o.gauge(loopQueued, l.Requeued, name, "requeued")
		o.value(loopLag, l.Lag.Seconds(), name)
		stale := int64(0)
		if l.Stale {
			stale = 1
		}
		o.gauge(loopStale, stale, name)
		turns.Merge(&l.Turn)
	}
	o.histogram(loopTurn, &turns, nil)
}

func (o *sink) tls(t *stats.TLS) {
	o.counts(handshakes, t.Versions)
	o.counter(handshakesResumed, t.Resumed)
	o.counter(earlyRequests, t.EarlyRequests)
	o.counter(handshakesFailed, t.Failed)
	o.gauge(handshakesRunning, t.Running)
	o.gauge(handshakesWaiting, t.Waiting)
	o.histogram(handshakeDuration, &t.Duration, nil)
}
