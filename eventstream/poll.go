package eventstream

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/takeover"
)

// PollOptions configure a [PollHandler].
type PollOptions struct {
	// OnOpen is called by the handler, with the request, when a poll waits. r is valid
	// only during the call.
	OnOpen func(p *Poll, r *http.Request)
	// OnClose is called once, on a goroutine of its own, when a poll has ended and OnOpen has
	// returned. The server's Shutdown does not wait for it.
	OnClose func(p *Poll)
	// ContentType is that of the answers. Default "application/json".
	ContentType string
	// Timeout is after how long the answer is empty. Default 25 s, below the usual half
	// minute of proxies; negative: never.
	Timeout time.Duration
	// Logger receives panics of OnClose. Default slog.Default.
	Logger *slog.Logger
}

// A PollHandler is an http.Handler whose requests wait for an answer. It sends the
// status, 200, and the head at once, and the body when there is one. Waiting requests
// cost no goroutine on chert, and over HTTP/1 the connection can be used again, if the
// request's body has been read. Make it with [NewPoll].
type PollHandler struct {
	o PollOptions // with defaults

	mu     sync.Mutex
	polls  map[*Poll]struct{}
	closed bool
}

// A Poll is a request that waits for its answer.
type Poll struct {
	h      *PollHandler
	answer func([]byte) // immutable after the handler's open
	parts  atomic.Int32 // of partEnded

	mu    sync.Mutex
	done  bool // it was answered, or the client has gone
	timer *time.Timer
	value any
}

// NewPoll makes a [PollHandler]. o may be nil; then polls wait for
// [PollHandler.AnswerAll].
func NewPoll(o *PollOptions) (*PollHandler, error) {
	if o == nil {
		o = new(PollOptions)
	}
	h := &PollHandler{o: *o, polls: make(map[*Poll]struct{})}
	h.o.ContentType, h.o.Timeout = cmp.Or(o.ContentType, "application/json"), cmp.Or(o.Timeout, 25*time.Second)
	for _, c := range []byte(h.o.ContentType) {
		if c < ' ' || c == 0x7f {
			return nil, errors.New("eventstream: ContentType has control characters")
		}
	}
	return h, nil
}

// ServeHTTP implements http.Handler. It returns when the poll waits, and the request's
// context ends then; on net/http's server when the poll has ended.
func (h *PollHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHead(w.Header(), h.o.ContentType, "no-store, no-transform")
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return
	}
	p := &Poll{h: h}
	own, err := goOn(w, r, "", (*polled)(p), func(t takeover.Streamer) error {
		return t.Hold(func(answer func([]byte)) takeover.Source {
			p.answer = answer
			return (*polled)(p)
		})
	})
	if err != nil {
		return
	}
	if own != nil {
		p.answer = func(b []byte) {
			own.Offer(b, len(b), -1)
			own.End(false)
		}
		own.control.Flush()
	}
	h.wait(p)
	call(own, h.o.OnOpen, p, r, func(returned bool) {
		partEnded(&p.parts, h.o.OnClose, p, h.o.Logger)
		if !returned {
			p.Answer(nil)
		}
	})
}

// wait makes p one that waits, unless it has ended meanwhile.
func (h *PollHandler) wait(p *Poll) {
	h.mu.Lock()
	p.mu.Lock()
	if !p.done {
		h.polls[p] = struct{}{}
		if h.o.Timeout > 0 {
			p.timer = time.AfterFunc(h.o.Timeout, func() { p.Answer(nil) })
		}
	}
	p.mu.Unlock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		p.Answer(nil)
	}
}

// SetValue stores a value with the poll.
func (p *Poll) SetValue(v any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.value = v
}

// Value returns what SetValue has stored, or nil.
func (p *Poll) Value() any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.value
}

// finish ends the wait for an answer, of which it reports whether there was one. mu is held.
func (p *Poll) finish() (first bool) {
	first = !p.done
	p.done = true
	if p.timer != nil {
		p.timer.Stop()
	}
	return first
}

// Answer sends the body of the answer, of which it keeps no part, and reports whether the
// poll was still waiting. It may be called by any goroutine and does not wait.
func (p *Poll) Answer(body []byte) bool {
	p.mu.Lock()
	first := p.finish()
	p.mu.Unlock()
	if first {
		p.answer(append([]byte(nil), body...))
	}
	return first
}

// AnswerAll answers all polls that wait, and returns how many.
func (h *PollHandler) AnswerAll(body []byte) (n int) {
	h.mu.Lock()
	all := slices.Collect(maps.Keys(h.polls))
	h.mu.Unlock()
	for _, p := range all {
		if p.Answer(body) {
			n++
		}
	}
	return n
}

// Len returns how many polls there are.
func (h *PollHandler) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.polls)
}

// Close makes all polls end with an empty answer, present and future ones. It is for
// http.Server.RegisterOnShutdown; chert's Shutdown does the same by itself.
func (h *PollHandler) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.AnswerAll(nil)
}

// polled is a Poll as a takeover.Source.
type polled Poll

func (p *polled) Writable() {}
func (p *polled) Stop()     { (*Poll)(p).Answer(nil) }

func (p *polled) Closed() {
	h := p.h
	p.mu.Lock()
	(*Poll)(p).finish()
	p.mu.Unlock()
	h.mu.Lock()
	delete(h.polls, (*Poll)(p))
	h.mu.Unlock()
	partEnded(&p.parts, h.o.OnClose, (*Poll)(p), h.o.Logger)
}
