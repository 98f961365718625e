package router

import "github.com/chert-http/chert/internal/pattern"

// This file is a radix tree of paths in normal form (escape.go). A node
// represents all paths that begin with the same bytes; wildcards are nodes of
// their own. For the patterns /a/b/z, /a/bc, /a/{x}/c and /a/{rest...}:
//
//	"/a/"            multi: /a/{rest...}
//	  "b"
//	    "/z"         leaf: /a/b/z
//	    "c"          leaf: /a/bc
//	  {single}
//	    "/c"         leaf: /a/{x}/c
//
// What is more specific is tried first: bytes, then the single wildcard, then
// the multi one. A failed attempt falls back to the next: /a/b/c fails under
// "b", and is found under {single}. Registration has rejected patterns for
// which this order would matter otherwise.

// A node is immutable once the tree is built.
type node struct {
	text   string // the bytes that lead here, after the parent's; "" for wildcards
	kids   []*node
	base   int    // kids[i] begins with byte base+i
	branch bool   // single or multi is set
	single *node  // what follows a single wildcard that begins here
	multi  *Route // the pattern whose last wildcard begins here
	leaf   *Route // the pattern that ends here
}

// A match is a lookup in progress. It stays on the caller's stack.
type match struct {
	// parts are what the wildcards match, in the order of the pattern; also
	// what a slash at the end of a pattern matches. more are those beyond the
	// array.
	parts [8]part
	more  []part
	n     int
	// unclean: some wildcard has matched a segment that is empty, "." or "..".
	// Patterns have none, so a path is clean if this is not set.
	unclean bool
}

// A part of a path; begin and end count the bytes that remain from there.
type part struct{ begin, end uint32 }

func (m *match) add(begin, end int) {
	p := part{uint32(begin), uint32(end)}
	if m.n < len(m.parts) {
		m.parts[m.n] = p
	} else {
		m.more = append(m.more[:m.n-len(m.parts)], p)
	}
	m.n++
}

// value returns what the i-th wildcard matches.
func (m *match) value(i int, path string) string {
	p := &m.parts[i&7]
	if i >= len(m.parts) {
		p = &m.more[i-len(m.parts)]
	}
	return path[len(path)-int(p.begin) : len(path)-int(p.end)]
}

// find returns the route that matches best, nil if there is none; then m.n is
// anything. rest is the path after n's bytes.
func (n *node) find(m *match, rest string) *Route {
	for rest != "" {
		var k *node
		if i := int(rest[0]) - n.base; uint(i) < uint(len(n.kids)) {
			k = n.kids[i]
		}
		if k != nil && !begins(rest, k.text) {
			k = nil
		}
		if !n.branch {
			if k == nil {
				return nil
			}
			rest = rest[len(k.text):]
			n = k
			continue
		}
		before := m.n
		if k != nil {
			if rt := k.find(m, rest[len(k.text):]); rt != nil {
				return rt
			}
			m.n = before
		}
		if n.single == nil {
			break
		}
		i := pattern.SegmentEnd(rest)
		seg := rest[:i]
		if seg == "%2F" {
			break // ServeMux treats it as the end of the path
		}
		if pattern.Dots(seg) {
			m.unclean = true
		}
		m.add(len(rest), len(rest)-i)
		if n.multi == nil {
			rest = rest[i:]
			n = n.single
			continue
		}
		if rt := n.single.find(m, rest[i:]); rt != nil {
			return rt
		}
		m.n = before
		break
	}
	if rest == "" && n.leaf != nil {
		return n.leaf
	}
	if n.multi != nil {
		m.add(len(rest), 0)
		m.unclean = m.unclean || !pattern.CleanRest(rest)
	}
	return n.multi
}

// begins reports whether s begins with text, whose first byte is known to
// match.
func begins(s, text string) bool {
	if len(s) < len(text) {
		return false
	}
	for i := 1; i < len(text); i++ {
		if s[i] != text[i] {
			return false
		}
	}
	return true
}

// add adds the rest of a pattern below n.
func (n *node) add(segments []pattern.Segment, rt *Route) {
	text := ""
	for i, s := range segments {
		text += "/"
		switch s.Kind {
		case pattern.Literal:
			text += normalSegment(s.Text)
		case pattern.End:
			// ServeMux treats a segment that is a slash as the end.
			n.child(text).leaf = rt
			n.child(text + "%2F").leaf = rt
			return
		case pattern.Single:
			n = n.child(text)
			text = ""
			if n.single == nil {
				n.single = new(node)
			}
			n.branch = true
			n = n.single
		case pattern.Multi:
			n = n.child(text)
			n.branch, n.multi = true, rt
			return
		}
		if i == len(segments)-1 {
			n.child(text).leaf = rt
		}
	}
}

// child returns the node that text leads to, creating it if needed.
func (n *node) child(text string) *node {
	for text != "" {
		at := n.kid(text[0])
		if *at == nil {
			*at = &node{text: text}
			return *at
		}
		k := *at
		same := 0
		for same < len(text) && same < len(k.text) && text[same] == k.text[same] {
			same++
		}
		if same < len(k.text) {
			// The two diverge within k's bytes.
			top := &node{text: k.text[:same]}
			k.text = k.text[same:]
			*top.kid(k.text[0]) = k
			*at, k = top, top
		}
		n, text = k, text[same:]
	}
	return n
}

// kid returns where the child that begins with c is stored.
func (n *node) kid(c byte) **node {
	switch end := n.base + len(n.kids); {
	case len(n.kids) == 0:
		n.base, n.kids = int(c), make([]*node, 1)
	case int(c) < n.base:
		n.kids = append(make([]*node, n.base-int(c)), n.kids...)
		n.base = int(c)
	case int(c) >= end:
		n.kids = append(n.kids, make([]*node, int(c)-end+1)...)
	}
	return &n.kids[int(c)-n.base]
}
