package static

import (
	"errors"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/rfc/coding"
	"github.com/chert-http/chert/internal/rfc/encode"
	"github.com/chert-http/chert/internal/rfc/field"
)

// This file implements content coding (RFC 9110 sections 8.4 and 12.5.3). A
// file in a coding has its own entry, with its own tag.

var (
	all = coding.Set(0).With(coding.Brotli).With(coding.Zstd).With(coding.Gzip)

	// After these two the file is sent as it is.
	errBusy    = errors.New("static: enough is being compressed")
	errUseless = errors.New("static: compressing does not pay")
)

// late is how much older than its file a sibling may be: archives and copies
// lose fractions of a second, and some systems have two.
const late = int64(2 * time.Second)

// variant returns the form of e that the request prefers, possibly e itself;
// the caller releases it instead of e. With an error the caller must still
// release e.
//
// It is also e if the request refuses that, as "identity;q=0" does, and there
// is no other. 406 would be allowed as well, but gives a client nothing to act
// on: RFC 9110 section 12.4.1 lets a server disregard the field instead, and
// nginx and Apache do.
func (h *Handler) variant(x *direct.Exchange, e *entry, p *plain, now int64) (*entry, error) {
	accept := field.Joined(x.Wire().Fields(), "Accept-Encoding")
	if accept == nil {
		return e, nil
	}
	for {
		siblings, known := h.siblings(e, p)
		if !known {
			return nil, errLater
		}
		c, _ := coding.Choose(accept, siblings, coding.OfFiles)
		sibling := c != coding.Identity
		if !sibling && e.squeezable {
			c, _ = coding.Choose(accept, all&^coding.Set(e.useless.Load()), coding.OfFiles)
		}
		if c == coding.Identity {
			return e, nil
		}
		v, err := h.coded(e, c, sibling, p, now)
		switch {
		case err == nil:
			e.release()
			return v, nil
		case err == errLater:
			return nil, err
		case sibling:
			// It is gone, or cannot be read: treated as missing.
			e.siblings.And(^uint32(1 << c))
		case err == errUseless:
			e.useless.Or(1 << c)
		default:
			return e, nil
		}
	}
}

// coded returns e in coding c.
func (h *Handler) coded(e *entry, c coding.Coding, sibling bool, p *plain, now int64) (*entry, error) {
	k := e.key.in(c)
	if v := h.cached(k, now); v != nil {
		// What is made of e has its state: a tag of size and time may be that of another file too, and the date of
		// the same one may have come.
		if v.base == e.tag && sibling == (v.name != e.name) &&
			(sibling || v.stat.same(&e.stat) && (e.ahead || !v.ahead)) {
			return v, nil
		}
		h.cache.drop(v)
		v.release()
	}
	if p == nil {
		return nil, errLater
	}
	if sibling {
		a := about{key: k, name: e.key.name + c.Suffix(), base: e.tag, media: e.media}
		return h.obtain(k, now, e.tag, func() (*entry, error) { return h.loadAs(a) })
	}
	return h.obtain(k, now, e.tag, func() (*entry, error) { return h.compress(e, c) })
}

// compress makes e's content in coding c. Concurrent compressions are bounded,
// since they use processor time.
func (h *Handler) compress(e *entry, c coding.Coding) (*entry, error) {
	select {
	case h.squeeze <- struct{}{}:
	default:
		return nil, errBusy
	}
	defer func() { <-h.squeeze }()
	b, err := h.readWhole(e)
	if err != nil {
		return nil, err
	}
	out, err := encode.Compress(nil, b, c)
	if err != nil {
		return nil, err
	}
	if len(out) > len(b)/10*9 {
		return nil, errUseless
	}
	v := &entry{about: about{key: e.key.in(c), name: e.name, base: e.tag, media: e.media}, stat: e.stat}
	v.lasting()
	v.setBody(out)
	if e.key.kind&kindListing != 0 {
		h.furnishListing(v)
	} else {
		h.furnish(v)
	}
	return v, nil
}

// siblings returns the codings that exist beside e's file; known is false if
// they have not been looked up and may not be now.
func (h *Handler) siblings(e *entry, p *plain) (set coding.Set, known bool) {
	if h.NoPrecompressed {
		return 0, true
	}
	s := e.siblings.Load()
	if s == 0 {
		if p == nil {
			return 0, false
		}
		s = h.findSiblings(e)
	}
	return coding.Set(s), true
}

// findSiblings looks them up.
func (h *Handler) findSiblings(e *entry) uint32 {
	s := uint32(siblingsKnown)
	for _, c := range coding.OfFiles {
		if !h.hasSibling(e.key.name, c) {
			continue
		}
		st, err := h.src.peek(e.key.name + c.Suffix())
		// An older sibling is of an earlier version of the file.
		if err == nil && st.regular && (e.stat.mtime == noTime || st.mtime >= e.stat.mtime-late) {
			s |= 1 << c
		}
	}
	e.siblings.Store(s)
	return s
}
