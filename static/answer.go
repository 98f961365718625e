package static

import (
	"bytes"
	"errors"
	"net/http"
	"os"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/rfc/cond"
	"github.com/chert-http/chert/internal/rfc/ranges"
	"github.com/chert-http/chert/internal/view"
)

// This file is the decision that both paths share. p is nil on the fast path:
// then it waits for nothing but the disk, and a response that would have to wait
// longer is left to the ordinary path, with x unchanged.

// errLater means that a request is left to the ordinary path.
var errLater = errors.New("static: not on the fast path")

// answer answers x and reports whether it did; with p it always does.
func (h *Handler) answer(x *direct.Exchange, p *plain) bool {
	if x.Method() != http.MethodGet && x.Method() != http.MethodHead {
		h.otherMethod(x)
		return true
	}
	if h.closed.Load() {
		h.refuse(x, http.StatusServiceUnavailable, "")
		return true
	}
	now := h.now()
	if h.sweepDue(now) {
		if p == nil {
			return false
		}
		h.sweep(now)
	}
	h.look(now)
	if e := h.find(x, now); e != nil {
		first := e.unsent.Load()
		// After an error the file is checked, below.
		if h.reply(x, e, p, now) == nil {
			if first {
				h.count.miss(x)
				e.unsent.Store(false)
			} else {
				h.count.hit(x)
			}
			return true
		}
	}
	if p == nil {
		return h.loadDirect(x, now)
	}
	h.count.miss(x)
	h.resolve(x, p, now)
	return true
}

// loadDirect answers with a file that is not in the cache. It makes a few system
// calls, which block only if the file must be read from disk: the loop then
// continues without this goroutine (docs/adr/0015).
func (h *Handler) loadDirect(x *direct.Exchange, now int64) bool {
	if !h.src.keeps() || len(h.try) > 0 || len(x.Path()) < 2 || x.Path()[0] != '/' {
		return false
	}
	name := string(x.Path()[1:])
	if t := parsePath(view.String(x.Path())); t.slash || t.name != name || h.hidden(name) || !h.src.localName(name) {
		return false
	}
	e, err := h.get(key{name, 0}, now)
	if err != nil {
		return false
	}
	// The ordinary path finds it in the cache, and should not count that as a hit.
	e.unsent.Store(true)
	if h.reply(x, e, nil, now) != nil {
		return false
	}
	e.unsent.Store(false)
	h.count.miss(x)
	return true
}

// find looks up the requested file in the cache, which contains only names that
// may be served: so it compares the path as received and nothing else, unless there is
// Options.Try.
func (h *Handler) find(x *direct.Exchange, now int64) *entry {
	if len(h.try) > 0 {
		return h.findTried(x, now)
	}
	path := x.Path()
	if len(path) == 0 || path[0] != '/' {
		return nil
	}
	name := path[1:]
	if len(name) > 0 && name[len(name)-1] != '/' {
		return h.cached(key{view.String(name), 0}, now)
	}
	folder := view.String(bytes.TrimSuffix(name, []byte("/")))
	if e := h.findIndex(folder, now); e != nil || !h.Listing {
		return e
	}
	return h.cached(key{folder, h.listingKind(x)}, now)
}

// reply answers with e, or a variant of it, and ends its use. The error is
// errLater, errChanging if the file is no longer e's, or one of opening it.
func (h *Handler) reply(x *direct.Exchange, e *entry, p *plain, now int64) error {
	if e.negotiable {
		v, err := h.variant(x, e, p, now)
		if err != nil {
			e.release()
			return err
		}
		e = v
	}
	switch cond.Check(x.Method(), x.Wire().Fields(), e.etag, e.modified) {
	case cond.NotModified:
		x.Send(e.notModified())
	case cond.Failed:
		h.failed(x, e)
	default:
		return h.content(x, e, p)
	}
	e.release()
	return nil
}

// content answers with the requested part of e, and ends its use.
func (h *Handler) content(x *direct.Exchange, e *entry, p *plain) error {
	// RFC 9110 section 14.2: Range applies only to GET. If-Range comes last of
	// the conditions (section 13.2.2).
	if x.Method() == http.MethodGet && e.seekable {
		// Range is not a list, so several lines are malformed, and
		// intermediaries may have used any of them. The whole content is always
		// correct.
		if v, n := x.Wire().Fields().First("Range"); n == 1 &&
			cond.RangeApplies(x.Wire().Fields(), e.etag, e.modified) {
			return h.partial(x, e, p, v)
		}
	}
	if e.ok != nil {
		x.Send(e.ok)
		return nil
	}
	if x.Method() == http.MethodHead {
		x.Wire().Send(e.head)
		e.release()
		return nil
	}
	return h.sendFile(x, e, p, nil)
}

// unopened stands for content that plain.stream sends instead. Such a response
// has a Content-Type, so no server reads from unopened to detect one.
var unopened = new(os.File)

// setFields sets the fields of the content.
func (e *entry) setFields(x *direct.Exchange) {
	for i := range e.fields {
		x.AddHeader(e.fields[i].Name, e.fields[i].Value)
	}
}

// sendFile answers with an e that is not in memory, or a part of it, if not nil,
// and ends its use.
func (h *Handler) sendFile(x *direct.Exchange, e *entry, p *plain, part *ranges.Range) error {
	whole := part == nil
	if whole {
		part = &ranges.Range{Length: e.size()}
	}
	f := direct.File{File: e.file, Offset: part.Start, Len: part.Length, Check: e.check, Done: e.done}
	switch {
	case e.file != nil:
		// The descriptor is of the version whose tag is sent; its content must
		// still be that version, too.
		if e.check() != nil {
			e.stale.Store(true)
			h.cache.drop(e)
			e.release()
			return errChanging
		}
		if p != nil {
			p.entry = e
		}
	case p == nil:
		return errLater
	default:
		var err error
		if f, err = h.openPart(e, p, part.Start, part.Length); err != nil {
			return err
		}
	}
	if whole {
		x.Wire().SendFileAs(e.head, f)
		return nil
	}
	e.setFields(x)
	setPart(x, *part, e.size())
	x.SendFile(f)
	return nil
}
