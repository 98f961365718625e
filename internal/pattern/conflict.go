package pattern

import (
	"fmt"
	"strings"
)

// This file decides which of two patterns wins. The one that matches less does:
// if q matches everything that p matches, and not the reverse, p is the more
// specific and is tried first. Two patterns that both match some request, and
// of which neither is more specific, may not be registered together:
//
//	/a/{x}   /a/b      the second is more specific
//	/a/{x}   /{x}/b    both match /a/b: rejected
//	/a/      GET /a/   the second is more specific
//	/a/b     GET /a/   the second has fewer methods, but more paths: rejected
//
// A pattern with a host wins over one without, and those of different hosts
// never meet.

// A relation relates what two patterns p and q match, as a set of the kinds of
// requests that exist: matched by both, by p only, by q only.
type relation uint8

const (
	both relation = 1 << iota
	onlyP
	onlyQ

	equal    = both
	overlaps = both | onlyP | onlyQ
)

// and joins the relations of two parts of a request, both of which must match.
func (r relation) and(s relation) relation {
	if r&both == 0 || s&both == 0 {
		return 0
	}
	return r | s
}

// Conflict returns why p and q cannot be registered together, in words, with p as the
// first: both match some request, and neither is more specific. It returns "" if they
// can be.
func (p *Pattern) Conflict(q *Pattern) string {
	if p.Host != q.Host {
		return ""
	}
	r := methods(p.Method, q.Method)
	if r == 0 {
		return ""
	}
	r = r.and(paths(p.Segments, q.Segments))
	if r != equal && r != overlaps {
		return ""
	}
	return explain(p, q)
}

// MoreMethods reports whether p matches methods that q does not.
func (p *Pattern) MoreMethods(q *Pattern) bool { return methods(p.Method, q.Method)&onlyP != 0 }

// methods relates methods: "" is any, and GET is HEAD too.
func methods(p, q string) relation {
	switch {
	case p == q:
		return both
	case p == "", p == "GET" && q == "HEAD":
		return both | onlyP
	case q == "", q == "GET" && p == "HEAD":
		return both | onlyQ
	}
	return 0
}

func paths(p, q []Segment) relation {
	r := both
	for i := 0; ; i++ {
		switch {
		case i == len(p) && i == len(q):
			return r
		case i == len(p):
			// The rest of q lies after what p's last segment matches, if that
			// matches more than one.
			return r.and(tail(p) | onlyP)
		case i == len(q):
			return r.and(tail(q) | onlyQ)
		}
		if r = r.and(relate(p[i], q[i])); r == 0 {
			return 0
		}
	}
}

func tail(p []Segment) relation {
	if p[len(p)-1].Kind == Multi {
		return both
	}
	return 0
}

func relate(p, q Segment) relation {
	switch {
	case p.Kind == Multi && q.Kind == Multi:
		return both
	case p.Kind == Multi:
		return both | onlyP
	case q.Kind == Multi:
		return both | onlyQ
	case p.slash() && q.slash():
		return both
	case p.slash() || q.slash():
		return 0 // a single wildcard does not match the end, nor %2F
	case p.Kind == Single && q.Kind == Single:
		return both
	case p.Kind == Single:
		return both | onlyP
	case q.Kind == Single:
		return both | onlyQ
	case p.Text == q.Text:
		return both
	}
	return 0
}

// slash reports whether s is the end of a path after a slash, or %2F, which
// ServeMux treats the same.
func (s Segment) slash() bool { return s.Kind == End || s.Kind == Literal && s.Text == "/" }

// explain says why p and q conflict.
func explain(p, q *Pattern) string {
	m, s := methods(p.Method, q.Method), paths(p.Segments, q.Segments)
	switch {
	case m.and(s) == equal:
		return "both match the same requests"
	case s == overlaps:
		return fmt.Sprintf("both match %q, and neither is more specific", common(p.Segments, q.Segments))
	case m&onlyP != 0:
		return "the first matches more methods, but fewer paths"
	}
	return "the first matches fewer methods, but more paths"
}

// common is a path that both match.
func common(p, q []Segment) string {
	var b strings.Builder
	for i := range max(len(p), len(q)) {
		b.WriteByte('/')
		s := Segment{}
		switch {
		case i >= len(p):
			s = q[i]
		case i >= len(q) || p[i].Kind <= q[i].Kind:
			s = p[i]
		default:
			s = q[i]
		}
		if s.Kind == Literal || s.Kind == Single {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}
