package h1

import (
	"bytes"
	"unsafe"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/view"
	"github.com/chert-http/chert/stats"
)

var _ conn.Inspected = (*Session)(nil)

// Speaks implements conn.Inspected.
func (s *Session) Speaks() string { return "HTTP/1" }

// New reports whether there has been no request. Only the Link's owner may call it.
func (s *Session) New() bool { return !s.begun }

// Running implements conn.Inspected.
func (s *Session) Running(owner bool, before int64, f func(r stats.Request, since int64)) {
	if x := s.cur.Load(); x != nil {
		x.Inspect(&s.Client, before, f)
		return
	}
	switch {
	case !owner:
		s.Stray(s, before, f)
		return
	case s.stage != waiting:
		return
	}
	since := s.Since(s.Link.Now())
	if since >= before {
		return
	}
	// It has been parsed, and will be again, when there is a slot.
	method, rest, _ := bytes.Cut(s.Link.Buffered(), []byte(" "))
	target, _, _ := bytes.Cut(rest, []byte(" "))
	r := s.Shown(unsafe.Pointer(s), string(method[:min(len(method), 32)]), view.String(target))
	r.Protocol, r.Stage, r.Way = "HTTP/1.1", "waiting", stats.Pooled
	f(r, since)
}
