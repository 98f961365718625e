package main

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
)

// reserved are paths in a folder that a route beside it is for, with other rules about who
// may have them: neither rewrite and try of the folder nor another name of such a file may
// lead to them, or a request would get past the route. Immutable.
type reserved []segments

// segments are those of a route's path, from where the folder begins.
type segments []segment

// A segment is that of a pattern.
type segment struct {
	text string // of a literal, decoded
	kind segmentKind
}

type segmentKind uint8

const (
	literal segmentKind = iota
	single              // {name}
	rest                // {name...}, or a slash at the end
	end                 // {$}
)

// reservedIn returns the paths in the folder at path that routes reserve. policy is that of
// the folder; path is "/" for the root of a site.
//
// Those of routes for GET count, which are for HEAD too, and of routes for all methods. A
// folder responds to no others, and what a route for HEAD alone refuses is also in the
// response to GET, which it leaves to the folder. A route that demands nothing of clients
// reserves nothing.
func reservedIn(path string, policy config.Policy, routes []config.Route) (all reserved) {
	own := segmentsOf(path)
	own = own[:len(own)-1]
	for _, r := range routes {
		if len(r.Methods) > 0 && !slices.Contains(r.Methods, http.MethodGet) || samePolicy(r.Policy, policy) ||
			samePolicy(r.Policy, config.Policy{}) {
			continue
		}
		if other := segmentsOf(r.Path); other.below(own) {
			all = append(all, other[len(own):])
		}
	}
	return all
}

// samePolicy reports whether both demand the same of clients.
func samePolicy(a, b config.Policy) bool {
	for _, p := range []*config.Policy{&a, &b} {
		p.Headers, p.HeaderRules, p.Errors, p.Log = nil, nil, nil, nil
	}
	return reflect.DeepEqual(a, b)
}

func segmentsOf(path string) (all segments) {
	for text := range strings.SplitSeq(path[1:], "/") {
		switch {
		case text == "{$}":
			all = append(all, segment{kind: end})
		case text == "" || strings.HasSuffix(text, "...}"):
			all = append(all, segment{kind: rest})
		case text[0] == '{':
			all = append(all, segment{kind: single})
		default:
			if decoded, err := url.PathUnescape(text); err == nil {
				text = decoded
			}
			all = append(all, segment{text: text})
		}
	}
	return all
}

// below reports whether s is for some paths in the folder own, and is more specific than it.
// One for "/img/f" is not in the folder of "/{a}/{path...}": the file f there is that of
// every other "/{a}/f", which no route but the folder's is for.
func (s segments) below(own segments) bool {
	if len(s) <= len(own) || s[len(own)].kind == rest {
		return false
	}
	for i, o := range own {
		if s[i].kind == rest || s[i].kind == literal && (o.kind != literal || s[i].text != o.text) {
			return false
		}
	}
	return true
}

// has reports whether a path in the folder is reserved, with or without a slash before it. A
// folder is reserved with a slash at its end if its page is, and without if what it redirects
// to is, or a file of its name.
func (all reserved) has(path string) bool {
	path = strings.TrimPrefix(path, "/")
	for _, s := range all {
		if s.match(path) {
			return true
		}
	}
	return false
}

func (s segments) match(path string) bool {
	for i, want := range s {
		if want.kind == rest {
			return true
		}
		if want.kind == end {
			return path == ""
		}
		have, after, slash := strings.Cut(path, "/")
		if have == "" || want.kind == literal && have != want.text || slash && i == len(s)-1 {
			return false
		}
		path = after
	}
	return path == ""
}
