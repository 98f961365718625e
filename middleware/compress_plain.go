package middleware

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/rfc/coding"
	"github.com/chert-http/chert/internal/rfc/encode"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// compressing is a response on the ordinary path. Its head and the beginning of its
// body are buffered until it is decided whether it is coded.
type compressing struct {
	wrap.Writer
	c      *compress
	coding coding.Coding // the client's choice
	head   bool          // HEAD: nothing is sent, so nothing is coded
	asked  wire.Fields   // the request's

	status  int
	held    []byte
	decided bool
	coded   bool
	out     *encode.Writer
	left    int64 // of the length that the handler has announced, while out is set; negative: none
}

func (a *compressing) fields() plainHeader { return plainHeader(a.Header()) }

// WriteHeader implements wrap.Hook.
func (a *compressing) WriteHeader(status int) {
	a.status = status
	h := a.fields()
	if status == http.StatusNotModified {
		unmodified(h, a.coding, a.asked)
	}
	_, typed := h["Content-Type"]
	switch {
	case !a.c.codable(status, h), typed && !a.c.types(h.Get("Content-Type")):
		a.decide(false)
	case h.Get("Content-Length") != "":
		n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
		if err != nil || n < int64(a.c.min) {
			a.decide(false)
		} else if typed {
			a.decide(true)
		}
	}
}

// decide begins the response. wanted: the response would be coded if the client
// accepts a coding.
func (a *compressing) decide(wanted bool) {
	a.decided = true
	if wanted {
		vary(a.fields())
		if a.coding != coding.Identity && (a.head || a.c.enter()) {
			a.coded = true
			a.left = -1
			if n, err := strconv.ParseInt(a.fields().Get("Content-Length"), 10, 64); err == nil {
				a.left = n
			}
			mark(a.fields(), a.coding)
			if !a.head {
				a.out = encode.NewWriter(a.Next(), a.coding)
			}
		}
	}
	a.PassHead(a.status)
}

// settle decides by what was written, of which p is the last.
func (a *compressing) settle(p []byte) error {
	a.Recall()
	h := a.fields()
	_, typed := h["Content-Type"]
	if !typed && len(a.held)+len(p) > 0 {
		// The server would guess the type from the coded bytes.
		sample := p
		if len(a.held) > 0 {
			sample = append(append(make([]byte, 0, 512), a.held[:min(len(a.held), 512)]...), p[:min(len(p), 512)]...)
		}
		h.Set("Content-Type", http.DetectContentType(sample))
	}
	// What follows Hijack is not coded.
	a.decide(a.c.types(h.Get("Content-Type")) && !a.Hijacked())
	held := a.held
	a.held = nil
	if len(held) == 0 {
		return nil
	}
	_, err := a.pass(held)
	return err
}

func (a *compressing) pass(p []byte) (int, error) {
	switch {
	case a.out != nil && a.left >= 0 && int64(len(p)) > a.left:
		return 0, http.ErrContentLength
	case a.out != nil:
		if a.left >= 0 {
			a.left -= int64(len(p))
		}
		return a.out.Write(p)
	case a.coded:
		return len(p), nil // HEAD
	}
	return a.Next().Write(p)
}

// Write implements wrap.Hook.
func (a *compressing) Write(p []byte) (int, error) {
	if !a.decided {
		if len(a.held)+len(p) < a.c.min {
			a.held = append(a.held, p...)
			return len(p), nil
		}
		if err := a.settle(p); err != nil {
			return 0, err
		}
	}
	return a.pass(p)
}

// Flush implements wrap.Hook.
func (a *compressing) Flush() error {
	if !a.decided {
		if err := a.settle(nil); err != nil {
			return err
		}
	}
	if a.out != nil {
		return a.out.Flush()
	}
	return nil
}

// ReadFrom implements wrap.Hook.
func (a *compressing) ReadFrom(n int64) bool {
	if !a.decided && n >= int64(a.c.min) {
		if _, typed := a.fields()["Content-Type"]; typed && a.settle(nil) != nil {
			return false // Write returns the error again
		}
	}
	return a.decided && !a.coded
}

// End implements wrap.Hook.
func (a *compressing) End(returned bool) {
	if a.out != nil {
		defer a.c.leave()
	}
	if !returned || a.Hijacked() {
		a.out = nil // leave it to the garbage collector: a response that is cut off must not be completed
		return
	}
	if a.head && a.status == 0 && a.fields().Get("Content-Length") != "" {
		a.WriteHeader(http.StatusOK) // the response has no body
	}
	switch {
	case a.status == 0:
	case !a.decided:
		// The body is complete, and small.
		a.Recall()
		a.decide(false)
		if len(a.held) > 0 {
			a.Next().Write(a.held)
		}
	case a.out != nil && a.left > 0:
		// The handler has failed, as http.ServeContent does of a file that cannot be read to its end. Without its
		// length the response would look whole.
		a.out = nil
		panic(http.ErrAbortHandler)
	case a.out != nil:
		a.out.Close()
		a.out = nil
		for name := range a.Header() {
			if strings.HasPrefix(name, http.TrailerPrefix) {
				// The server would give a body that is short now a Content-Length, and no trailers.
				http.NewResponseController(a.Next()).Flush()
				return
			}
		}
	}
}
