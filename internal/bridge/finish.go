package bridge

import (
	"errors"
	"net"
	"net/http"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
)

// This file is the end of a response, after its handler.

// finish sends what is left after the handler has returned.
func (w *response) finish() conn.Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hijacked {
		return conn.Detached
	}
	w.handlerDone = true
	if !w.wroteHeader {
		w.implicitHeader()
	}
	w.flushStage()
	w.sendHead(nil)
	if w.chunking && !w.x.isHEAD {
		w.endChunks()
	}
	w.lastWire()
	w.broken = w.err != nil
	w.missing = w.status == http.StatusNotFound || w.status == http.StatusMethodNotAllowed
	defer w.end()
	switch {
	case w.err != nil:
		return failure(w.err)
	case w.limitHit:
		return conn.Linger
	case w.closeAfter.Load():
		return conn.Close
	case !w.x.isHEAD && w.length != -1 && http1.BodyAllowed(w.status) && w.length != w.written:
		// RFC 9112 section 8: the client counts on Content-Length; only the
		// end of the connection can tell it that less came.
		return conn.Close
	}
	return conn.More
}

// implicitHeader is the answer of a handler that wrote nothing: 200, or the
// refusal of a body that it could not read.
func (w *response) implicitHeader() {
	status := http.StatusOK
	if w.x.hasBody() {
		if bad := w.x.body.refusal(); bad != 0 {
			w.closeAfter.Store(true)
			status = bad
		}
	}
	w.handlerDone = false
	w.writeHeader(status)
	w.handlerDone = true
}

// failure is how a connection ends that would not take what was written: a
// client that stopped reading gets a reset, so that nothing waits for it.
func failure(err error) conn.Verdict {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return conn.Reset
	}
	return conn.Close
}

// abort ends the response of a handler that panicked.
func (w *response) abort() conn.Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hijacked {
		return conn.Detached
	}
	w.handlerDone = true
	if w.writing != nil && w.headOut {
		// Else there is at most the beginning of a head, which nobody could
		// make sense of.
		w.flushWire(nil)
	}
	w.end()
	return conn.Close
}
