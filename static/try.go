package static

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/filename"
	"github.com/chert-http/chert/internal/rfc/percent"
	"github.com/chert-http/chert/internal/view"
)

// This file tries the candidates of Options.Try. For a request of /docs/a, Try of
//
//	{path}   {path}.html   {path}/   /index.html   =404
//
// is the files docs/a and docs/a.html, the folder docs/a, the file index.html, and
// a status. The path of /docs/a/ ends in a slash, which no file's name does, so there
// only the folder and what follows it are left.

// cleanTry is what Options.CleanURLs tries.
var cleanTry = []string{"{path}", "{path}.html", "{path}/"}

// parseTry checks and parses Options.Try.
func parseTry(all []string) (out []filename.Candidate, err error) {
	for i, text := range all {
		c, err := filename.ParseCandidate(text)
		if err == nil && c.Status != 0 && i < len(all)-1 {
			err = fmt.Errorf("%q is a status, so nothing can follow it", text)
		}
		if err != nil {
			return nil, fmt.Errorf("option Try[%d]: %w", i, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// mayTry reports whether the file or folder of c may be sent, if there is one, for a path
// that is not hidden. It does not keep name.
func (h *Handler) mayTry(c *filename.Candidate, name string) bool {
	switch {
	case c.Own():
		return true
	case !c.Fixed && (h.dotfile(name) || !h.hiding.Empty() && h.hidden(strings.Clone(name))):
		return false
	case h.Guarded == nil:
		return true
	}
	own := strings.Clone(name) // else name is on the heap, also where nothing is guarded
	return !h.Guarded(own) && !h.guardedForm(own)
}

// cleanPath is the path that {path} stands for.
func (t target) cleanPath() string {
	if t.slash && t.name != "" {
		return "/" + t.name + "/"
	}
	return "/" + t.name
}

// findTried is find for Options.Try: it looks for the first candidate that exists, and
// leaves one that exists and is not in the cache to the ordinary path. It allocates
// nothing if the first one is cached; each one before it that does not exist takes a
// system call.
func (h *Handler) findTried(x *direct.Exchange, now int64) *entry {
	raw := view.String(x.Path())
	t := parsePath(raw)
	if len(raw) == 0 || raw[0] != '/' || raw[1:] != t.name && (!t.slash || raw[1:] != t.name+"/") ||
		h.hidden(t.name) || h.CleanURLs && h.mayBeUnclean(t.name) {
		return nil
	}
	for i := range h.try {
		c := &h.try[i]
		var buf [256]byte
		if c.Status != 0 || len(c.Before)+len(raw)+len(c.After) > len(buf) {
			return nil
		}
		to := parsePath(view.String(c.AppendName(buf[:0], raw)))
		switch {
		case to.slash && t.slash && c.Own():
			return h.findIndex(to.name, now)
		case to.slash && c.After == "" && !c.Fixed:
			continue // a file has no slash at its end
		case to.slash:
			return nil
		case !h.mayTry(c, to.name):
			continue
		}
		if e := h.cached(key{to.name, 0}, now); e != nil {
			return e
		}
		if !h.src.keeps() {
			return nil
		}
		name := strings.Clone(to.name) // a source may keep it
		if !h.src.localName(name) {
			continue
		}
		if st, err := h.src.stat(name); err == nil && st.regular || err != nil && !isGone(err) {
			return nil
		}
	}
	return nil
}

// findIndex looks up the index of a folder in the cache.
func (h *Handler) findIndex(name string, now int64) *entry {
	var buf [256]byte
	if len(h.Index) == 0 || len(name)+1+len(h.Index[0]) > len(buf) {
		return nil
	}
	b := append(buf[:0], name...)
	if name != "" {
		b = append(b, '/')
	}
	return h.cachedIndex(view.String(append(b, h.Index[0]...)), now)
}

// cachedIndex is cached for an index, which may have been sent for its own path and be
// guarded. It does not keep name.
func (h *Handler) cachedIndex(name string, now int64) *entry {
	e := h.cached(key{name, 0}, now)
	if e != nil && h.guarded(e.key.name) {
		e.release()
		return nil
	}
	return e
}

// tryAll answers with the first candidate that exists.
func (h *Handler) tryAll(x *direct.Exchange, p *plain, t target, now int64) {
	if h.CleanURLs && h.redirectClean(x, t) {
		return
	}
	for i := range h.try {
		c := &h.try[i]
		if c.Status == http.StatusNotFound {
			break
		}
		if c.Status != 0 {
			h.refuse(x, c.Status, t.name)
			return
		}
		to := parsePath(string(c.AppendName(nil, t.cleanPath())))
		file := !strings.HasSuffix(c.After, "/") && !(c.Fixed && to.slash)
		if file && to.slash || !h.mayTry(c, to.name) || !h.src.localName(to.name) {
			continue
		}
		var err error
		switch {
		case file:
			err = h.serve(x, p, key{to.name, 0}, now)
		case c.Own() && !t.slash && to.name != "":
			err = h.toFolder(x, p, to.name, now)
		default:
			err = h.inFolder(x, p, to.name, now)
		}
		switch {
		case err == nil:
			return
		case err != errFolder && !isGone(err):
			h.fail(x, p, to.name, err, now)
			return
		}
		h.noteOut(now, to.name, err)
	}
	if h.CleanURLs && t.slash && t.name != "" && h.isFile(t.name+".html") && h.asWritten(x) {
		h.redirect(x, t.name, false)
		return
	}
	h.absent(x, p, t.name, now)
}

// toFolder redirects to a folder's name with a slash. If the path is not the one that the
// client has written, there is none to redirect to, and the folder is answered with.
func (h *Handler) toFolder(x *direct.Exchange, p *plain, name string, now int64) error {
	st, err := h.src.stat(name)
	switch {
	case err != nil:
		return err
	case !st.folder:
		return fs.ErrNotExist
	case !h.asWritten(x):
		return h.inFolder(x, p, name, now)
	}
	h.redirect(x, name, true)
	return nil
}

// isFile reports whether a name is that of a file which may be sent.
func (h *Handler) isFile(name string) bool {
	if h.hidden(name) || !h.src.localName(name) || h.guarded(name) {
		return false
	}
	st, err := h.src.stat(name)
	return err == nil && st.regular
}

// asWritten reports whether the path is the end of the one that the client has written:
// a prefix may have been removed from it, but nothing has rewritten it. Otherwise a
// redirect relative to what the client has written would lead elsewhere.
func (h *Handler) asWritten(x *direct.Exchange) bool {
	raw := view.String(x.Wire().Target())
	if raw == "" {
		return true // a request that no server has read
	}
	raw, _, _ = strings.Cut(raw, "?")
	written, err := url.PathUnescape(raw)
	return err == nil && strings.HasSuffix(written, view.String(x.Path()))
}

const htmlSuffix = ".html"

// mayBeUnclean reports whether redirectClean may redirect.
func (h *Handler) mayBeUnclean(name string) bool {
	return strings.HasSuffix(name, htmlSuffix) || len(h.Index) > 0 && strings.HasSuffix(h.Index[0], htmlSuffix) &&
		path.Base(name) == strings.TrimSuffix(h.Index[0], htmlSuffix)
}

// redirectClean redirects from /about.html to /about, and from /docs/index.html and
// /docs/index to /docs/. It reports false if the path is clean, or there would be another
// file at the clean one.
func (h *Handler) redirectClean(x *direct.Exchange, t target) bool {
	if t.slash || h.hidden(t.name) || !h.src.localName(t.name) || !h.mayBeUnclean(t.name) || !h.asWritten(x) {
		return false
	}
	file := t.name
	if !strings.HasSuffix(file, htmlSuffix) {
		if h.isFile(file) {
			return false
		}
		file += htmlSuffix
	}
	clean := strings.TrimSuffix(file, htmlSuffix)
	base := path.Base(file)
	if len(h.Index) > 0 && base == h.Index[0] {
		base = ""
	} else if base = strings.TrimSuffix(base, htmlSuffix); base == "" || base == "." || base == ".." ||
		h.isFile(clean) {
		return false
	}
	if st, err := h.src.stat(file); err != nil || !st.regular {
		return false
	}
	raw, _, _ := strings.Cut(string(x.Wire().Target()), "?")
	last, err := url.PathUnescape(raw[strings.LastIndexByte(raw, '/')+1:])
	if raw != "" && (err != nil || last != path.Base(t.name)) {
		return false // an encoded slash: what the Location is relative to has other segments
	}
	h.redirectTo(x, file, string(appendQuery(percent.Append([]byte("./"), base, inName), string(x.RawQuery()))))
	return true
}

// errTryAndClean is an error of the options.
var errTryAndClean = errors.New("static: CleanURLs: it is a Try of its own; want one of them")
