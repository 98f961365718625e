package static

import (
	"path"
	"strings"

	"github.com/chert-http/chert/internal/filename"
	"github.com/chert-http/chert/internal/rfc/percent"
)

// This file turns a request's path, which may be anything, into the name of a file.

// A target is what a path refers to.
type target struct {
	name  string // clean, relative; "" is the folder that is served
	slash bool   // the path ends in a slash: it names a folder
}

// parsePath cleans a decoded path as http.FileServer does. The result never
// begins with "..": the path is resolved from the root.
func parsePath(p string) target {
	if p == "" || p[0] != '/' {
		p = "/" + p // what http.StripPrefix leaves
	}
	t := target{slash: endsInFolder(p)}
	t.name = path.Clean(p)[1:]
	return t
}

// endsInFolder reports whether a path can only be a folder's.
func endsInFolder(p string) bool {
	last := p[strings.LastIndexByte(p, '/')+1:]
	return last == "" || last == "." || last == ".."
}

// dotfile reports whether name is hidden because it or a folder in it is a
// dotfile.
func (c *config) dotfile(name string) bool { return !c.Dotfiles && filename.Dotfile(name) }

// appendSegment appends one segment of a URL's path in a form that is safe in a
// Location field: bytes that are not allowed in a segment (RFC 3986 section
// 3.3) are percent-encoded, including the backslash, which browsers treat as a
// slash.
func appendSegment(b []byte, raw string) []byte {
	if strings.IndexByte(raw, ':') >= 0 {
		// RFC 3986 section 4.2: otherwise it would be a scheme.
		b = append(b, "./"...)
	}
	return percent.Append(b, raw, inSegment)
}

var (
	// inSegment is pchar, and the percent sign of existing escapes.
	inSegment = percent.Of("-._~!$&'()*+,;=:@%")
	// inName is pchar for a decoded name, whose percent signs are encoded. A "./" before it
	// keeps a colon from ending a scheme.
	inName = percent.Of("-._~!$&'()*+,;=:@")
	// inQuery is all visible bytes: a query is passed on as received, except
	// for bytes that no URI has (RFC 9110 section 10.2.2).
	inQuery = percent.But("")
)

// location returns where a request for rawTarget is redirected: with a slash
// for a folder, without for a file. It is relative, so it is correct below
// http.StripPrefix and behind a proxy, and never leads to another host. ""
// means that there is no redirect.
func location(rawTarget, rawQuery string, folder bool) string {
	raw, _, _ := strings.Cut(rawTarget, "?")
	raw, _, _ = strings.Cut(raw, "#")
	trimmed := strings.TrimRight(raw, "/")
	if !folder && len(trimmed) == len(raw) {
		// "/file%2f" or "/file/.": with no slash to remove it would redirect to
		// itself.
		return ""
	}
	base := trimmed[strings.LastIndexByte(trimmed, '/')+1:]
	if base == "" || !folder && (base == "." || strings.EqualFold(base, "%2e")) {
		return "" // "/file/./": a reference to "." is one to the folder of the file
	}
	var b []byte
	if !folder {
		b = append(b, strings.Repeat("../", len(raw)-len(trimmed))...)
	}
	b = appendSegment(b, base)
	if folder {
		b = append(b, '/')
	}
	return string(appendQuery(b, rawQuery))
}

// appendQuery appends the query of a request, if it has one.
func appendQuery(b []byte, raw string) []byte {
	if raw == "" {
		return b
	}
	return percent.Append(append(b, '?'), raw, inQuery)
}
