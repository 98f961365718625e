package static

import (
	"path"
	"strings"
	"unsafe"

	"github.com/chert-http/chert/internal/rfc/percent"
)

// This file is a request's path, which may be anything, made a file's name.

// A target is what a path asks for.
type target struct {
	name  string // clean, relative; "" is the folder that is served
	slash bool   // the path ends in a slash: it names a folder
}

// parsePath cleans a decoded path as http.FileServer does. What is cleaned never
// begins with "..": the path is taken from the root.
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

// hidden reports whether name does not exist for being a dotfile or being
// inside a folder that is one.
func (c *config) hidden(name string) bool {
	if c.Dotfiles {
		return false
	}
	// RFC 8615 section 3: what is there is meant to be found.
	if name == ".well-known" {
		return false
	}
	name = strings.TrimPrefix(name, ".well-known/")
	return strings.HasPrefix(name, ".") || strings.Contains(name, "/.")
}

// appendSegment appends one segment of a URL's path as it is safe to stand in a
// Location field: what is no character of a segment (RFC 3986 section 3.3) is
// percent-encoded, also the backslash, which browsers take for a slash.
func appendSegment(b []byte, raw string) []byte {
	if strings.IndexByte(raw, ':') >= 0 {
		// RFC 3986 section 4.2: else it would be a scheme.
		b = append(b, "./"...)
	}
	return percent.Append(b, raw, inSegment)
}

var (
	// inSegment is pchar, and the percent sign of what is encoded already.
	inSegment = percent.Of("-._~!$&'()*+,;=:@%")
	// inQuery is all that can be seen: a query is passed on as it came, but for
	// bytes that no URI has (RFC 9110 section 10.2.2).
	inQuery = percent.But("")
)

// location is where the request for rawTarget should have gone: with a slash
// for a folder, without for a file. It is relative, so it is right behind
// http.StripPrefix and a proxy, and never leads to another host. "" is nowhere.
func location(rawTarget, rawQuery string, folder bool) string {
	raw, _, _ := strings.Cut(rawTarget, "?")
	raw, _, _ = strings.Cut(raw, "#")
	trimmed := strings.TrimRight(raw, "/")
	if !folder && len(trimmed) == len(raw) {
		// "/file%2f" or "/file/.": with no slash to take off it would lead to
		// itself.
		return ""
	}
	base := trimmed[strings.LastIndexByte(trimmed, '/')+1:]
	if base == "" {
		return ""
	}
	var b []byte
	if !folder {
		b = append(b, strings.Repeat("../", len(raw)-len(trimmed))...)
	}
	b = appendSegment(b, base)
	if folder {
		b = append(b, '/')
	}
	if rawQuery != "" {
		b = append(b, '?')
		b = percent.Append(b, rawQuery, inQuery)
	}
	return string(b)
}

// viewString views b without a copy, for those who do not keep it.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
