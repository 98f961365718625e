package static

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/listing"
	"github.com/chert-http/chert/internal/rfc/coding"
	"github.com/chert-http/chert/internal/rfc/field"
	"github.com/chert-http/chert/internal/view"
)

// This file is the ordinary path for files and folders that are not in the cache.

// resolve answers a request from the source.
func (h *Handler) resolve(x *direct.Exchange, p *plain, now int64) {
	t := parsePath(string(x.Path()))
	if h.hidden(t.name) || len(h.try) == 0 && !h.src.localName(t.name) {
		h.absent(x, p, t.name, now)
		return
	}
	if t.name == "" && len(x.Path()) == 0 {
		// What http.StripPrefix leaves of the prefix itself: relative links in
		// the index would resolve wrongly.
		if raw, _, _ := bytes.Cut(x.Wire().Target(), []byte("?")); len(raw) > 0 && raw[0] == '/' &&
			raw[len(raw)-1] != '/' {
			h.redirect(x, "", true)
			return
		}
	}
	if len(h.try) > 0 {
		h.tryAll(x, p, t, now)
		return
	}
	var err error
	if t.slash || t.name == "" {
		err = h.inFolder(x, p, t.name, now)
	} else if err = h.serve(x, p, key{t.name, 0}, now); err == errFolder {
		err = h.toFolder(x, p, t.name, now)
	}
	if err != nil {
		h.fail(x, p, t.name, err, now)
	}
}

// serve answers with the file k.
func (h *Handler) serve(x *direct.Exchange, p *plain, k key, now int64) error {
	for try := 1; ; try++ {
		e, err := h.get(k, now)
		if err != nil {
			return err
		}
		if err = h.reply(x, e, p, now); err == nil || !changing(err) || try == loadTries {
			return err
		}
	}
}

// inFolder answers with the index or the listing of a folder. If it has neither, the error
// is that of a name that does not exist.
func (h *Handler) inFolder(x *direct.Exchange, p *plain, name string, now int64) error {
	for _, index := range h.Index {
		file := join(name, index)
		if h.hidden(file) || h.guarded(file) {
			continue
		}
		err := h.serve(x, p, key{file, 0}, now)
		if err == nil || err != errFolder && !isGone(err) {
			return err
		}
		h.noteOut(now, file, err)
	}
	st, err := h.src.stat(name)
	switch {
	case err != nil:
		return err
	case st.regular && !h.asWritten(x) && h.guarded(name):
		return fs.ErrNotExist // the path is not the file's own: it ends in a slash
	case st.regular && !h.asWritten(x):
		return h.serve(x, p, key{name, 0}, now)
	case st.regular:
		h.redirect(x, name, false)
		return nil
	case st.folder && h.Listing:
		k := key{name, h.listingKind(x)}
		e, err := h.obtain(k, now, "", func() (*entry, error) { return h.list(k) })
		if err == nil {
			err = h.reply(x, e, p, now)
		}
		return err
	}
	return fs.ErrNotExist
}

// redirect sends the client to a folder's name with a slash, or a file's
// without.
func (h *Handler) redirect(x *direct.Exchange, name string, folder bool) {
	raw := string(x.Wire().Target())
	if raw == "" {
		// A request that no server has read.
		raw = (&url.URL{Path: string(x.Path())}).EscapedPath()
	}
	to := location(raw, string(x.RawQuery()), folder)
	if to == "" {
		h.refuse(x, http.StatusNotFound, name)
		return
	}
	h.redirectTo(x, name, to)
}

// redirectTo sends the client to a relative URL.
func (h *Handler) redirectTo(x *direct.Exchange, name, to string) {
	head := http.Header{}
	h.apply(head, name, notContent)
	head["Location"] = []string{to}
	x.Send(direct.NewResponse(http.StatusMovedPermanently, head, nil))
}

const (
	// maxListed is how many entries of a folder are read.
	maxListed = 100_000
	// maxListing is how many listings are generated at the same time: one of
	// maxListed entries takes about 100 ms of a processor and 60 MiB.
	maxListing = 4
	// maxWaiting is how many wait for that; requests for the same listing count once.
	maxWaiting = 64
)

// errCrowded rejects a listing beyond maxWaiting.
var errCrowded = errors.New("static: enough folders are being listed")

// lists bounds the listings that are being generated.
type lists struct {
	places  chan struct{}
	waiting atomic.Int64
}

// enter waits for a slot; leave releases it.
func (l *lists) enter() error {
	select {
	case l.places <- struct{}{}:
		return nil
	default:
	}
	defer l.waiting.Add(-1)
	if l.waiting.Add(1) > maxWaiting {
		return errCrowded
	}
	l.places <- struct{}{}
	return nil
}

func (l *lists) leave() { <-l.places }

// listingKind returns the kind of listing requested.
func (h *Handler) listingKind(x *direct.Exchange) kind {
	query := view.String(x.RawQuery())
	o := listing.ParseOrder(query)
	k := kindListing | kind(o.By)<<kindColumnShift
	if o.Desc {
		k |= kindDescending
	}
	if wantsJSON(x, query) {
		k |= kindJSON
	}
	return k
}

// wantsJSON reports whether a listing is to be JSON: a parameter selects it or,
// without one, Accept names JSON and not HTML.
func wantsJSON(x *direct.Exchange, query string) bool {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if format, ok := strings.CutPrefix(pair, "format="); ok {
			return format == "json"
		}
	}
	accept := field.Joined(x.Wire().Fields(), "Accept")
	return bytes.Contains(accept, []byte("application/json")) && !bytes.Contains(accept, []byte("text/html"))
}

// list generates the listing of a folder. It is not compared with the folder
// later, and is valid for one interval. If it took longer than half of that, it
// is valid for as long again as it took: otherwise a large folder would be listed
// all the time.
func (h *Handler) list(k key) (*entry, error) {
	if err := h.lists.enter(); err != nil {
		return nil, err
	}
	defer h.lists.leave()
	now := h.now()
	found, more, err := h.src.list(k.name, maxListed)
	if err != nil {
		return nil, err
	}
	page := listing.Page{
		Path: "/" + k.name + "/", Root: k.name == "", Truncated: more,
		Order: listing.Order{By: listing.Column(k.kind >> kindColumnShift & 3), Desc: k.kind&kindDescending != 0},
	}
	if page.Root {
		page.Path = "/"
	}
	for _, e := range found {
		name := join(k.name, e.Name)
		if (h.Dotfiles || !strings.HasPrefix(e.Name, ".")) && !h.hidden(name) && !h.guardedEntry(name, e.Dir) {
			page.Entries = append(page.Entries, e)
		}
	}
	e := &entry{about: about{key: k}, stat: stat{mtime: noTime}, young: true}
	e.checked.Store(now)
	// A file named like the folder with a suffix is no coding of its listing.
	e.siblings.Store(siblingsKnown)
	if k.kind&kindJSON != 0 {
		e.media = "application/json"
		e.setBody(page.AppendJSON(nil))
	} else {
		e.media = "text/html; charset=utf-8"
		e.setBody(page.AppendHTML(nil))
	}
	h.furnishListing(e)
	e.life = 2 * (h.now() - now)
	return e, nil
}

// furnishListing prepares the responses of a listing.
func (h *Handler) furnishListing(e *entry) {
	head := http.Header{"Cache-Control": {"no-cache"}, "Vary": {"Accept"}}
	if e.key.kind&kindJSON == 0 {
		head.Set("Content-Security-Policy", listing.ContentSecurityPolicy)
	}
	head["Content-Type"] = []string{e.media}
	h.apply(head, e.key.name, notContent)
	if c := e.key.coding(); c != coding.Identity {
		head["Content-Encoding"] = []string{c.Token()}
		addVary(head, "Accept-Encoding")
	} else if h.maySqueeze(int64(len(e.body))) {
		e.squeezable, e.negotiable = true, true
		addVary(head, "Accept-Encoding")
	}
	e.seekable = false
	e.etag = e.tag
	head["Etag"] = []string{e.tag}
	e.answers(head)
}
