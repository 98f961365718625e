package middleware

import (
	"bytes"
	"net/http"
	"strings"
	"sync"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/rfc/coding"
	"github.com/chert-http/chert/internal/rfc/encode"
	"github.com/chert-http/chert/internal/rfc/field"
)

// exchangeHeader is a header of the fields of a response on the fast path.
type exchangeHeader struct{ x *wire.Exchange }

func (e exchangeHeader) Get(name string) string { return e.x.GetHeader(name) }
func (e exchangeHeader) Set(name, value string) { e.x.SetHeader(name, value) }
func (e exchangeHeader) Add(name, value string) { e.x.AddHeader(name, value) }
func (e exchangeHeader) Del(name string)        { e.x.DelHeader(name) }

// Values expects a canonical name.
func (e exchangeHeader) Values(name string) (values []string) {
	for f := range e.x.ResponseFields {
		if f.Name == name {
			values = append(values, f.Value)
		}
	}
	if r := e.x.Ready(); len(values) > 1 && r != nil && e.x.HasKept() && !wire.IsList(name) {
		if own := r.Header()[name]; own != nil {
			return own // instead of those of outer middleware
		}
	}
	return values
}

func (c *compress) serveDirect(dx *direct.Exchange, next direct.Handler) bool {
	x := dx.Wire()
	x.KeepHere() // it needs the body
	if !next.ServeDirect(dx) {
		return false
	}
	chosen := c.choose(field.Joined(x.Fields(), "Accept-Encoding"))
	if r := x.Ready(); r != nil && !x.HasFile() {
		c.sendDerived(x, r, chosen)
		return true
	}
	h := exchangeHeader{x}
	size := x.Size()
	switch {
	case x.Status() == http.StatusNotModified:
		unmodified(h, chosen, x.Fields())
		return true
	case size < int64(c.min) || !c.codable(x.Status(), h):
		return true
	case x.HasFile():
		if x.GetHeader("Content-Type") == "" || c.types(x.GetHeader("Content-Type")) {
			x.Discard() // the ordinary path reads and codes it
			return false
		}
		return true
	case x.GetHeader("Content-Type") == "":
		x.SetHeader("Content-Type", http.DetectContentType(x.ResponseBody()))
	}
	if !c.types(x.GetHeader("Content-Type")) {
		return true
	}
	vary(h)
	if chosen != coding.Identity {
		c.code(x, chosen)
	}
	return true
}

var etagName = wire.NewName("Etag")

var coded = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// code codes the body, unless the limit of encoders is reached.
func (c *compress) code(x *wire.Exchange, chosen coding.Coding) {
	if !c.enter() {
		return
	}
	defer c.leave()
	b := coded.Get().(*bytes.Buffer)
	defer coded.Put(b)
	b.Reset()
	w := encode.NewWriter(b, chosen)
	w.Write(x.ResponseBody())
	if w.Close() != nil { // a buffer does not fail
		return
	}
	mark(exchangeHeader{x}, chosen)
	x.SetResponseBody(b.Bytes())
}

// sendDerived sends the response derived of r. Kept fields are not part of it,
// so they are handled here.
func (c *compress) sendDerived(x *wire.Exchange, r *wire.Response, chosen coding.Coding) {
	h := exchangeHeader{x}
	if r.Status() == http.StatusNotModified {
		if !weakens(h.Get("Etag"), chosen, x.Fields()) {
			chosen = coding.Identity
		}
	} else if x.HasKept() && !c.codable(r.Status(), h) {
		return
	}
	d := r.Derive(c.keys[chosen], func(r *wire.Response) *wire.Response { return c.derive(r, chosen) })
	if d == nil {
		return
	}
	x.Send(d)
	if chosen == coding.Identity || !x.HasKept() {
		return
	}
	if r.Status() != http.StatusNotModified {
		x.DelHeader("Accept-Ranges")
	}
	if tag := h.Get("Etag"); strings.HasPrefix(tag, `"`) { // d's own is weak
		x.DelHeader("Etag")
		x.Keep(etagName, "W/"+tag)
	}
}

// derive returns r coded, or with the fields that it needs beside coded ones;
// nil if r needs no change.
func (c *compress) derive(r *wire.Response, chosen coding.Coding) *wire.Response {
	h, body := r.Header(), r.Body()
	switch {
	case r.Status() == http.StatusNotModified:
		vary(h)
		if chosen != coding.Identity {
			weaken(h)
		}
		return wire.NewResponse(r.Status(), h, nil)
	case len(body) < c.min || !c.codable(r.Status(), h) || !c.types(h.Get("Content-Type")):
		return nil
	}
	vary(h)
	if chosen != coding.Identity {
		small, err := encode.Compress(nil, body, chosen)
		if err == nil {
			mark(h, chosen)
			body = small
		}
	}
	return wire.NewResponse(r.Status(), h, body)
}
