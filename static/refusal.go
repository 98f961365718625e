package static

import (
	"bytes"
	"net/http"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/listing"
	"github.com/chert-http/chert/internal/rfc/field"
)

// This file formats error responses: a line of text for programs, a page for
// browsers.

// A form is the format of an error response.
type form uint8

const (
	line     form = iota // of text
	page                 // of HTML
	pageHere             // the same with a link to the folder that the path is in
	pageUp               // or, of a folder that is not there, to the one above
	forms
)

// ups are the links of pages. They are relative, since a prefix may have been
// removed from the path.
var ups = [forms]string{pageHere: "./", pageUp: "../"}

// formFor returns the form that the client of x can show. Browsers name HTML in
// Accept when they navigate to a page, and not when they load an image or a
// script.
func formFor(x *direct.Exchange) form {
	if !bytes.Contains(field.Joined(x.Wire().Fields(), "Accept"), []byte("text/html")) {
		return line
	}
	switch n := len(x.Path()); {
	case n <= 1:
		return page
	case x.Path()[n-1] == '/':
		return pageUp
	}
	return pageHere
}

// reasons explain what a status means for files.
var reasons = map[int]string{
	http.StatusForbidden: "The server has no permission to read this.",
	http.StatusNotFound: "There is nothing at this address. It may have been moved or removed, or " +
		"the address is misspelled.",
	http.StatusMethodNotAllowed: "Files can only be read here.",
	http.StatusPreconditionFailed: "The file is not in the state that the request asked for. It may have " +
		"changed.",
	http.StatusRequestedRangeNotSatisfiable: "The file does not have the part that was asked for. It may have become " +
		"shorter.",
	http.StatusInternalServerError: "This could not be read. The server\u2019s log says why.",
	http.StatusServiceUnavailable:  "The server cannot read this at the moment. Try again in a few seconds.",
}

// refuse answers with a status. name is the path it is for, which rules match.
func (h *Handler) refuse(x *direct.Exchange, status int, name string) {
	f := formFor(x)
	if len(h.rules) > 0 {
		x.Send(h.newRefusal(status, name, f))
		return
	}
	key := status*int(forms) + int(f)
	r, ok := h.texts.Load(key)
	if !ok {
		r = h.newRefusal(status, name, f)
		h.texts.Store(key, r)
	}
	x.Send(r.(*direct.Response))
}

func (h *Handler) newRefusal(status int, name string, f form) *direct.Response {
	head := http.Header{}
	if status >= 400 && f != line {
		head["Content-Security-Policy"] = []string{listing.ContentSecurityPolicy}
	}
	h.apply(head, name, notKept)
	switch status {
	case http.StatusMethodNotAllowed:
		head["Allow"] = []string{allow}
	case http.StatusNoContent:
		head["Allow"] = []string{allow}
		return direct.NewResponse(status, head, nil)
	case http.StatusServiceUnavailable:
		head["Retry-After"] = []string{"1"}
	}
	if status >= 500 {
		head["Cache-Control"] = []string{"no-store"}
	}
	addVary(head, "Accept")
	head["Content-Type"] = []string{f.media()}
	head["X-Content-Type-Options"] = []string{"nosniff"}
	return direct.NewResponse(status, head, f.body(status))
}

func (f form) media() string {
	if f == line {
		return "text/plain; charset=utf-8"
	}
	return "text/html; charset=utf-8"
}

func (f form) body(status int) []byte {
	switch {
	case f != line:
		p := listing.ErrorPage{Status: status, Title: http.StatusText(status), Text: reasons[status], Up: ups[f]}
		return p.AppendHTML(nil)
	case status == http.StatusNotFound:
		return []byte("404 page not found\n") // net/http's
	}
	return []byte(http.StatusText(status) + "\n")
}

// refuseOf is refuse for an error about an existing file.
func (h *Handler) refuseOf(x *direct.Exchange, e *entry, status int) {
	f := formFor(x)
	x.SetStatus(status)
	x.AddHeader("Content-Type", f.media())
	x.AddHeader("X-Content-Type-Options", "nosniff")
	vary, policy := "", f != line
	for _, own := range e.fields {
		switch {
		case own.Name == "Vary":
			vary = own.Value
			continue
		case own.Name == "Content-Security-Policy":
			policy = false
		}
		if notKept(own.Name) && own.Name != "X-Content-Type-Options" || own.Name == "Etag" {
			x.AddHeader(own.Name, own.Value)
		}
	}
	x.AddHeader("Vary", varyOn(vary, "Accept"))
	if policy {
		x.AddHeader("Content-Security-Policy", listing.ContentSecurityPolicy)
	}
	x.Write(f.body(status))
}
