package eventstream

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/rfc/coding"
	"github.com/chert-http/chert/internal/roster"
	"github.com/chert-http/chert/internal/takeover"
)

// A Handler is an http.Handler that opens streams and calls the functions of its
// [Options]. Make it with [New].
type Handler struct {
	o    Options // with defaults
	last []byte

	// In ticks; 0 for none.
	tick           time.Duration
	beatAfter, age uint32
	now            atomic.Uint32 // advances while there are streams

	mu       sync.Mutex
	streams  roster.Roster[Stream]
	opening  int  // streams that are not in streams yet
	sweeping bool // a goroutine does
	closed   bool
}

// New makes a [Handler]. o may be nil; then streams get heartbeats and nothing else.
func New(o *Options) (*Handler, error) {
	if o == nil {
		o = new(Options)
	}
	h := &Handler{o: *o}
	h.o.Retry, h.o.MaxUnsent = min(cmp.Or(o.Retry, defaultRetry), mostRetry), cmp.Or(o.MaxUnsent, defaultMaxUnsent)
	if o.Slow > SlowDrop {
		return nil, fmt.Errorf("eventstream: Slow: unknown value %d", o.Slow)
	}
	last := Event{Type: "shutdown"}
	if o.Last != nil {
		last = *o.Last
	}
	if err := last.check(); err != nil {
		return nil, err
	}
	h.last = last.append(nil)
	h.setTicks(cmp.Or(o.Heartbeat, defaultHeartbeat), max(o.MaxAge, 0))
	return h, nil
}

// ServeHTTP implements http.Handler. It answers GET with a stream, HEAD with a stream's
// head, and other methods with 405. Range and conditions of a request do not concern a
// stream and are ignored (RFC 9110 sections 13.1 and 14.2). It returns when the stream
// has been opened, and the request's context ends then; on net/http's server when the
// stream has ended.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "eventstream: the method is not GET", http.StatusMethodNotAllowed)
		return
	}
	head := w.Header()
	setHead(head, "text/event-stream", "no-cache, no-transform")
	zip := h.o.Compression && acceptsGzip(head, r) && len(head["Content-Encoding"]) == 0
	if r.Method == http.MethodHead {
		if zip {
			head.Set("Content-Encoding", coding.Gzip.Token())
		}
		w.WriteHeader(http.StatusOK)
		return
	}
	if !h.enter() {
		w.WriteHeader(http.StatusOK) // w may have another
		w.Write(h.appendRetry(nil))
		return
	}
	h.open(w, r, zip)
}

// setHead sets the fields of a response that is not to be held back on the way. caching is its Cache-Control, unless
// there is one: what compresses or caches on the way might also hold events back.
func setHead(head http.Header, mediaType, caching string) {
	head.Set("Content-Type", mediaType)
	if len(head["Cache-Control"]) == 0 {
		head.Set("Cache-Control", caching)
	}
	head.Set("X-Accel-Buffering", "no") // nginx
}

// enter reserves room for a stream.
func (h *Handler) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.o.MaxStreams > 0 && h.streams.Len()+h.opening >= h.o.MaxStreams {
		return false
	}
	h.opening++
	return true
}

// open opens a stream for which there is room.
func (h *Handler) open(w http.ResponseWriter, r *http.Request, zip bool) {
	s := &Stream{h: h, lastID: h.lastID(r)}
	coded := ""
	if zip {
		s.z, coded = new(zipped), coding.Gzip.Token()
		w.Header().Set("Content-Encoding", coded)
	}
	added := false
	defer func() {
		if !added { // also after a panic of what wraps w
			h.mu.Lock()
			defer h.mu.Unlock()
			h.opening--
		}
	}()
	if takeover.Find[takeover.Streamer](w) != nil && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	own, err := goOn(w, r, coded, (*source)(s), func(t takeover.Streamer) error {
		return t.Outlive(func(l takeover.Stream, chunked bool) takeover.Source {
			s.link, s.chunked = l, chunked
			return (*source)(s)
		})
	})
	if err != nil {
		return
	}
	if own != nil {
		s.link = own
	}
	h.add(s)
	added = true
	s.mu.Lock()
	s.begin()
	s.mu.Unlock()
	call(own, h.o.OnOpen, s, r, func(returned bool) {
		s.mu.Lock()
		s.lastID = ""
		s.mu.Unlock()
		partEnded(&s.parts, h.o.OnClose, s, h.o.Logger)
		if !returned {
			s.Close()
		}
	})
}

// goOn has s continue the response to r, which has the given coding, when the handler has returned: as
// pass asks of chert, or by own on the handler's goroutine, if the response is not chert's or something
// on the way changes what is written.
func goOn(w http.ResponseWriter, r *http.Request, coded string, s takeover.Source,
	pass func(takeover.Streamer) error) (own *writer, err error) {
	t := takeover.Find[takeover.Streamer](w)
	w.WriteHeader(http.StatusOK)
	if _, ok := w.(takeover.Streamer); t != nil && !ok {
		http.NewResponseController(w).Flush() // what wraps w must not keep anything back
	}
	if t == nil || strings.Join(w.Header()["Content-Encoding"], ",") != coded {
		return newWriter(w, r, s), nil
	}
	return nil, pass(t)
}

// call calls onOpen and then opened, and has own, if there is one, write until the end. returned is false after
// a panic of onOpen.
func call[T any](own *writer, onOpen func(T, *http.Request), v T, r *http.Request, opened func(returned bool)) {
	exec.Finish(func() {
		if onOpen != nil {
			onOpen(v, r)
		}
	}, func(returned bool) {
		switch opened(returned); {
		case own == nil:
		case returned:
			own.run()
		default:
			own.over()
		}
	})
}

// lastID returns the ID of the last event that the client has received, or "".
func (h *Handler) lastID(r *http.Request) string {
	id := r.Header.Get("Last-Event-ID")
	if id == "" && h.o.LastIDParam != "" {
		id = r.URL.Query().Get(h.o.LastIDParam)
	}
	return strings.Clone(id)
}

// add makes s one of the open streams, unless it has ended meanwhile, and ends it if the
// handler has been closed.
func (h *Handler) add(s *Stream) {
	h.mu.Lock()
	h.opening--
	s.mu.Lock()
	s.sent = h.now.Load()
	if h.age > 0 {
		s.until = s.sent + ageOf(h.age)
	}
	ended := s.ended
	s.mu.Unlock()
	closed := h.closed
	if !ended {
		s.index = h.streams.Add(s)
		h.sweepSoon()
	}
	h.mu.Unlock()
	if closed {
		s.stop()
	}
}

// remove is called when s has ended. s.ended is set, so add comes before or does nothing.
func (h *Handler) remove(s *Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if moved, _ := h.streams.Remove(s.index, s); moved != nil {
		moved.index = s.index
	}
}

// Len returns how many streams are open.
func (h *Handler) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams.Len()
}

// Close sends Options.Last to all streams and ends them, and further requests get an
// empty stream. It does not wait. It is for http.Server.RegisterOnShutdown; chert's
// Shutdown does the same by itself.
func (h *Handler) Close() {
	h.mu.Lock()
	h.closed = true
	all := h.streams.Snapshot()
	h.mu.Unlock()
	for s := range all.All() {
		s.stop()
	}
}

// partEnded is called when OnOpen has returned, and when the response has ended, which comes first if a client
// ends its stream of HTTP/2 or HTTP/3 meanwhile. The second of the two calls, which parts counts, starts OnClose.
func partEnded[T any](parts *atomic.Int32, onClose func(T), v T, logger *slog.Logger) {
	if parts.Add(1) == 2 && onClose != nil {
		// On a goroutine of its own, where a panic would end the process.
		go exec.Call(func() { onClose(v) }, func(e exec.End) { e.Log(logger, "eventstream: panic") })
	}
}
