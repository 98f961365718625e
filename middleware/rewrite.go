package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/internal/rfc/percent"
	"github.com/chert-http/chert/internal/view"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// RewriteOptions are the options of Rewrite.
type RewriteOptions struct {
	// Rules are tried in order. The first that matches applies, once.
	Rules []RewriteRule
	// Not reports new paths that the handler must not respond to, such as those that
	// another handler guards: the response is 404. It must be safe for concurrent use, and
	// is called on the fast path. Nil means that there are none.
	Not func(path string) bool
}

// A RewriteRule replaces the path of a request, and perhaps its query.
type RewriteRule struct {
	// From is a regular expression of package regexp, for the decoded path as the handler
	// sees it. It may match any part of it, unless it has ^ and $; the whole path is
	// replaced.
	From string
	// To is the path that replaces it, decoded, and may have a query after a question
	// mark, percent-encoded; without one the query of the request is kept, and with an
	// empty one removed. {name} and {1} stand for what the groups of From have matched,
	// {path} for the path before, and {query}, in the query only, for the query before.
	// In the query, values of clients are encoded. To begins with a slash.
	To string
}

// Rewrite replaces the path of requests for the handler, by regular expressions. The
// client does not notice, and access logs show what it has sent. The new path is cleaned:
// it has no empty segments and none of "." and "..", whatever clients send. Rewrite belongs
// inside of all that decides by the path, such as a router and what protects its routes: the
// handler responds to the new path without them, unless RewriteOptions.Not has it. Handlers
// see the new path in URL.Path, and Exchange.Path, and what the client has sent in
// RequestURI, and wire.Exchange.Target.
//
// Expressions take time in proportion to the length of the path. On the fast path those
// longer than 512 bytes are left to the ordinary path.
//
// It is an error if an expression cannot be parsed, or To has other placeholders.
func Rewrite(o *RewriteOptions) (func(http.Handler) http.Handler, error) {
	all := &rewrites{not: options(o).Not}
	for i, rule := range options(o).Rules {
		r, err := newRewrite(rule)
		if err != nil {
			return nil, fmt.Errorf("middleware: Rewrite: Rules[%d]: %w", i, err)
		}
		all.rules = append(all.rules, r)
	}
	return all.wrap, nil
}

// rewrites is immutable.
type rewrites struct {
	rules []*rewrite
	not   func(path string) bool // nil: none
}

// guarded is the response to paths of RewriteOptions.Not.
var guarded = wrap.Refusal(http.StatusNotFound)

// A rewrite is a rule.
type rewrite struct {
	from     *regexp.Regexp
	path     []rewritePart
	query    []rewritePart
	hasQuery bool
}

// A rewritePart is text, or a placeholder.
type rewritePart struct {
	text  string
	group int // of the expression; or one of the following
}

const (
	partText  = -1
	partPath  = -2
	partQuery = -3
)

func newRewrite(rule RewriteRule) (*rewrite, error) {
	if rule.From == "" {
		return nil, errors.New("option From is empty")
	}
	from, err := regexp.Compile(rule.From)
	if err != nil {
		return nil, fmt.Errorf("option From: %w", err)
	}
	r := &rewrite{from: from}
	if !strings.HasPrefix(rule.To, "/") {
		return nil, fmt.Errorf("option To: %q does not begin with a slash", rule.To)
	}
	for _, c := range []byte(rule.To) {
		if c < ' ' || c == 0x7f || c == '#' {
			return nil, fmt.Errorf("option To: %q has a control character or a #, which no path has", rule.To)
		}
	}
	to, query, hasQuery := strings.Cut(rule.To, "?")
	r.hasQuery = hasQuery
	if r.path, err = r.parts(to, false); err == nil {
		r.query, err = r.parts(query, true)
	}
	if err != nil {
		return nil, fmt.Errorf("option To: %w", err)
	}
	if strings.ContainsAny(query, " \"<>") {
		return nil, fmt.Errorf("option To: the query %q is not percent-encoded", query)
	}
	return r, nil
}

// parts splits a path or a query.
func (r *rewrite) parts(to string, query bool) (all []rewritePart, err error) {
	for to != "" {
		text, rest, found := strings.Cut(to, "{")
		name, after, closed := strings.Cut(rest, "}")
		if text != "" {
			all = append(all, rewritePart{text, partText})
		}
		if strings.Contains(text, "}") || found && !closed {
			return nil, errors.New("a brace without the other one")
		}
		if found {
			group, ok := r.placeholder(name, query)
			if !ok {
				return nil, fmt.Errorf("{%s} is neither a group of From nor {path}, and {query} is for the query", name)
			}
			all = append(all, rewritePart{group: group})
		}
		to = after
	}
	return all, nil
}

func (r *rewrite) placeholder(name string, query bool) (group int, ok bool) {
	if i := r.from.SubexpIndex(name); i > 0 {
		return i, true
	}
	if n, err := strconv.Atoi(name); err == nil && strconv.Itoa(n) == name && n > 0 && n <= r.from.NumSubexp() {
		return n, true
	}
	switch {
	case name == "path":
		return partPath, true
	case name == "query" && query:
		return partQuery, true
	}
	return 0, false
}

// maxDirectRewrite is the longest path that is matched on an event loop, in bytes.
const maxDirectRewrite = 512

func (all *rewrites) wrap(next http.Handler) http.Handler {
	if len(all.rules) == 0 {
		return next
	}
	return wrap.Handler(next,
		func(w http.ResponseWriter, r *http.Request) { all.plain(w, r, next) },
		func(x *direct.Exchange, next direct.Handler) bool {
			before, query := x.Path(), x.RawQuery()
			if len(before) > maxDirectRewrite {
				return false
			}
			to, newQuery, ok := all.apply(view.String(before), view.String(query))
			if !ok {
				return next.ServeDirect(x)
			}
			if all.not != nil && all.not(to) {
				refusal.Direct(x, guarded)
				return true
			}
			x.Wire().SetPath(view.Bytes(to))
			x.Wire().SetRawQuery(view.Bytes(newQuery))
			done := next.ServeDirect(x)
			x.Wire().SetPath(before)
			x.Wire().SetRawQuery(query)
			return done
		})
}

func (all *rewrites) plain(w http.ResponseWriter, r *http.Request, next http.Handler) {
	to, query, ok := all.apply(r.URL.Path, r.URL.RawQuery)
	if !ok {
		next.ServeHTTP(w, r)
		return
	}
	if all.not != nil && all.not(to) {
		refusal.Plain(w, r, guarded)
		return
	}
	inner, u := *r, *r.URL
	u.Path, u.RawPath, u.RawQuery, u.ForceQuery = to, "", query, false
	inner.URL = &u
	wrap.Serve(next, w, r, &inner)
}

// apply returns the new path and query; ok is false if no rule matches. It allocates only
// then.
func (all *rewrites) apply(before, query string) (to, newQuery string, ok bool) {
	if before == "" || before[0] != '/' { // "*" of OPTIONS, and CONNECT
		return "", "", false
	}
	i := slices.IndexFunc(all.rules, func(r *rewrite) bool { return r.from.MatchString(before) })
	if i < 0 {
		return "", "", false
	}
	r := all.rules[i]
	groups := r.from.FindStringSubmatchIndex(before)
	to = cleanRewritten(string(r.fill(nil, r.path, before, query, groups, false)))
	if !r.hasQuery {
		return to, query, true
	}
	return to, string(r.fill(nil, r.query, before, query, groups, true)), true
}

func (r *rewrite) fill(b []byte, parts []rewritePart, before, query string, groups []int, encode bool) []byte {
	for _, p := range parts {
		value := ""
		switch p.group {
		case partText:
			b = append(b, p.text...)
			continue
		case partQuery:
			b = append(b, query...)
			continue
		case partPath:
			value = before
		default:
			if begin := groups[2*p.group]; begin >= 0 { // it may be in an alternative that has not matched
				value = before[begin:groups[2*p.group+1]]
			}
		}
		if encode {
			b = percent.Append(b, value, unreserved)
		} else {
			b = append(b, value...)
		}
	}
	return b
}

// unreserved are the bytes of a value in a query that are not encoded (RFC 3986 section
// 2.3).
var unreserved = percent.Of("-._~")

// cleanRewritten cleans a path, and keeps a slash at its end.
func cleanRewritten(p string) string {
	last := p[strings.LastIndexByte(p, '/')+1:]
	clean := path.Clean(p)
	if (last == "" || last == "." || last == "..") && clean != "/" {
		clean += "/"
	}
	return clean
}
