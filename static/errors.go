package static

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/rfc/field"
	"github.com/chert-http/chert/internal/rfc/ranges"
)

// This file sends all responses that are not the content of a file.

const allow = "GET, HEAD, OPTIONS"

// otherMethod answers what is neither GET nor HEAD.
func (h *Handler) otherMethod(x *direct.Exchange) {
	status := http.StatusMethodNotAllowed
	if x.Method() == http.MethodOptions {
		status = http.StatusNoContent
	}
	h.refuse(x, status, strings.TrimPrefix(string(x.Path()), "/"))
}

// fail answers what could not be opened, read or listed.
func (h *Handler) fail(x *direct.Exchange, p *plain, name string, err error, now int64) {
	switch {
	case isGone(err) || err == errFolder:
		h.noteOut(now, name, err)
		h.absent(x, p, name, now)
	case errors.Is(err, fs.ErrPermission):
		h.log(now, name, err)
		h.refuse(x, http.StatusForbidden, name)
	case isFull(err):
		h.log(now, name, err)
		h.refuse(x, http.StatusServiceUnavailable, name)
	case changing(err), err == errCrowded:
		// The file kept changing, too many listings are being generated, or the
		// handler is being closed.
		h.refuse(x, http.StatusServiceUnavailable, name)
	default:
		h.log(now, name, err)
		h.refuse(x, http.StatusInternalServerError, name)
	}
}

// log reports an error to Logger, at most one a second.
func (h *Handler) log(now int64, name string, err error) {
	last := h.logged.Load()
	if now-last >= int64(time.Second) && h.logged.CompareAndSwap(last, now) {
		h.Logger.Error("a file cannot be served", "file", name, "error", err)
	}
}

// noteOut logs a link that leads out of the folder, at most one a minute:
// 404 alone would be hard to explain for the user who made it.
func (h *Handler) noteOut(now int64, name string, err error) {
	last := h.outward.Load()
	if leadsOut(err) && now-last >= int64(time.Minute) && h.outward.CompareAndSwap(last, now) {
		h.Logger.Warn("a link leads out of the folder; what is there is not served", "file", name)
	}
}

// absent answers for a path that does not exist: with Options.SPA, with 404 and
// Options.NotFound, or with 404 and a page or a line of text.
func (h *Handler) absent(x *direct.Exchange, p *plain, name string, now int64) {
	if h.SPA != "" && navigates(x, name) {
		if err := h.serve(x, p, key{h.SPA, kindFallback}, now); err == nil {
			return
		}
	}
	if h.NotFound == "" || !h.sendNotFound(x, p, name, now) {
		h.refuse(x, http.StatusNotFound, name)
	}
}

// navigates reports whether a browser navigates to a page, and does not load a
// script or an image: those must be 404, or the page would be taken for them.
func navigates(x *direct.Exchange, name string) bool {
	accept := field.Joined(x.Wire().Fields(), "Accept")
	if bytes.Contains(accept, []byte("text/html")) {
		return true
	}
	last := name[strings.LastIndexByte(name, '/')+1:]
	return (len(accept) == 0 || string(accept) == "*/*") && !strings.Contains(last, ".")
}

// sendNotFound answers with Options.NotFound, and reports false if it cannot.
func (h *Handler) sendNotFound(x *direct.Exchange, p *plain, name string, now int64) bool {
	e, err := h.get(key{h.NotFound, kindNotFound}, now)
	if err != nil {
		return false
	}
	f := direct.File{File: e.file, Len: e.size(), Check: e.check, Done: e.done}
	switch {
	case e.ok != nil:
		x.Write(e.body)
		e.release()
	case x.Method() == http.MethodHead:
		f.File = unopened
		x.SendFile(f)
	case e.file != nil:
		p.entry = e
		x.SendFile(f)
	default:
		if f, err = h.openPart(e, p, 0, e.size()); err != nil {
			return false
		}
		x.SendFile(f)
	}
	head := http.Header{"Content-Type": {e.field("Content-Type")}}
	if h.SPA != "" {
		addVary(head, "Accept")
	}
	h.apply(head, name, notKept)
	x.SetStatus(http.StatusNotFound)
	for name, values := range head {
		x.SetHeader(name, values[0])
	}
	return true
}

// failed answers a request whose condition does not hold (RFC 9110 section
// 15.5.13).
func (h *Handler) failed(x *direct.Exchange, e *entry) {
	h.refuseOf(x, e, http.StatusPreconditionFailed)
}

// unsatisfiable answers a range that is not in the content (RFC 9110 section
// 15.5.17).
func (h *Handler) unsatisfiable(x *direct.Exchange, e *entry) {
	h.refuseOf(x, e, http.StatusRequestedRangeNotSatisfiable)
	x.AddHeader("Content-Range", ranges.Unsatisfied(e.size()))
}
