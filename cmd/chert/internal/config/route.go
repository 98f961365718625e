package config

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/pattern"
	"github.com/chert-http/chert/internal/rfc/media"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/static"
)

// Route is what a site does with the requests of a path. It has one of Root, Proxy, Target
// and Respond.
type Route struct {
	At      Position
	Path    string // a pattern of package router, without method and host
	Methods []string
	When    *middleware.Condition // nil: what no route with the same path and a condition is for
	Policy                        // the site's, where the route has none of its own

	Root    string
	Options static.Options
	Rewrite []middleware.RewriteRule // of paths in Root

	Proxy *Proxy

	To     string // as the file has it
	Target Target // of To
	Status int    // of Target

	Respond *direct.Response
}

// Patterns returns the patterns of router for r's path and methods.
func (r *Route) Patterns() []string {
	if len(r.Methods) == 0 {
		return []string{r.Path}
	}
	all := make([]string, len(r.Methods))
	for i, method := range r.Methods {
		all[i] = method + " " + r.Path
	}
	return all
}

// Key is the same for routes with the same path and methods, between which conditions
// choose.
func (r *Route) Key() string {
	return r.Path + " " + strings.Join(slices.Sorted(slices.Values(r.Methods)), " ")
}

// countFolders returns how many folders sites and their routes have.
func countFolders(sites []*table) (n int) {
	for _, s := range sites {
		if s.m["root"] != nil {
			n++
		}
		routes, _ := s.m["route"].([]any)
		for _, r := range routes {
			if m, ok := r.(map[string]any); ok && m["root"] != nil {
				n++
			}
		}
	}
	return n
}

// routes reads the routes of a site, whose options are base.
func (l *loader) routes(tables []*table, cfg *Config, site Site, base options, each share) (all []Route) {
	var earlier placed
	var at []Position
	for _, t := range tables {
		r, patterns := l.route(t, cfg, site, base, each)
		all, at = append(all, r), append(at, t.spot.key)
		if r.When != nil {
			continue // in the place of one without a condition
		}
		pathAt := t.spot.child("path").value
		if err := earlier.check(patterns, site.Root != "" || site.Proxy != nil); err != nil {
			l.errorf(pathAt, "the path %q %v", r.Path, err)
		}
		for _, p := range patterns {
			earlier = append(earlier, place{p, pathAt.Line})
		}
	}
	for i, r := range all {
		same := func(o Route) bool { return o.When == nil && o.Key() == r.Key() }
		if r.When != nil && r.Path != "" && !slices.ContainsFunc(all, same) {
			l.errorf(at[i], "no route without a condition has the path %q and the same methods; want one, which says "+
				"what other requests get", r.Path)
		}
	}
	return all
}

// placed are the patterns of a site's routes so far, and the lines that have them.
type placed []place

type place struct {
	*pattern.Pattern
	line int
}

// everything is the pattern of a site's own folder.
var everything = func() *pattern.Pattern {
	p, err := pattern.Parse("/")
	if err != nil {
		panic(err)
	}
	return p
}()

// check returns why a route with some patterns cannot be added to a site, which may have a
// folder for all that its routes do not match.
func (all placed) check(patterns []*pattern.Pattern, folder bool) error {
	for _, p := range patterns {
		for _, e := range all {
			why := e.Conflict(p)
			if rest, ok := strings.CutPrefix(why, "the first "); ok { // e is
				return fmt.Errorf("cannot be beside the one in line %d, which %s", e.line, rest)
			}
			if why != "" {
				return fmt.Errorf("cannot be beside the one in line %d: %s", e.line, why)
			}
		}
		if folder && p.Conflict(everything) != "" {
			return errors.New("matches every request, so root or proxy of the site is never used; leave one of them " +
				"out")
		}
	}
	return nil
}

// route reads one route.
func (l *loader) route(t *table, cfg *Config, site Site, base options, each share) (r Route,
	patterns []*pattern.Pattern) {
	var wildcards *Wildcards
	r.At = t.spot.key
	r.Path, wildcards = l.routePath(t)
	r.Methods = l.routeMethods(t)
	r.When = l.condition(t)
	r.Policy = l.policy(t, site.Policy)
	r.ClientCert, _ = l.clientCert(t, site.ClientCert, site.TLS, true)
	if r.Limits.Rate != nil && r.Limits.Rate != site.Limits.Rate {
		r.Limits.Rate.Name = counterName(site.Hosts, r.Path, r.Methods, r.When)
	}
	before := len(t.asked)
	o := l.options(t, base)
	r.Rewrite = l.rewrite(t)
	fileKeys := t.asked[before:]
	l.siteErrors(t, &o, &r.Policy)

	root, rootAt, hasRoot := t.str("root")
	to, toAt, hasRedirect := t.str("redirect")
	status, statusAt, hasRespond := t.number("respond")
	r.Status = http.StatusMovedPermanently
	l.redirectStatus(t, &r.Status)
	body := l.respondBody(t, int(status))
	strip := l.strip(t, r.Path, wildcards)
	forward := l.forward(t, cfg, o, r.Rewrite)

	switch l.action(t, fileKeys) {
	case "root":
		r.Options = o.shared(each)
		if hasRoot {
			r.Root = l.root(root, rootAt, o)
		}
		if wildcards != nil && !wildcards.Rest {
			l.errorf(t.spot.child("path").value, "the path of a route with root ends in a wildcard like {name...} "+
				`for the name in the folder, as in "/img/{path...}"`)
		}
	case "proxy":
		if r.Proxy = forward; forward != nil {
			forward.Strip = strip
		}
	case "redirect":
		if !hasRedirect || wildcards == nil {
			break
		}
		var err error
		r.To = to
		if r.Target, err = l.routeTarget(to, wildcards); err != nil {
			l.errorf(toAt, "redirect: %v", err)
		}
	case "respond":
		if hasRespond {
			r.Respond = l.respond(int(status), statusAt, body)
		}
	}
	t.done()
	if wildcards != nil {
		for _, text := range r.Patterns() {
			if p, err := pattern.Parse(text); err == nil {
				patterns = append(patterns, p)
			}
		}
	}
	return r, patterns
}

func (l *loader) routeTarget(to string, w *Wildcards) (Target, error) {
	for _, name := range w.Names {
		if name == "host" || name == "uri" {
			return nil, fmt.Errorf("{%s} is the request's here; call the path's wildcard differently", name)
		}
	}
	return ParseTarget(to, w)
}

// routePath reads a path. The wildcards are nil if it is not valid.
func (l *loader) routePath(t *table) (string, *Wildcards) {
	path, at, ok := t.str("path")
	switch {
	case t.m["path"] == nil:
		l.errorf(t.spot.key, `%s has no path; want path = "/api/{rest...}"`, t.name)
	case !ok:
	case strings.ContainsAny(path, " \t"):
		l.errorf(at, `path wants no method and no spaces; want methods = ["GET"] for the method`)
	case strings.ContainsAny(path, "?#"):
		l.errorf(at, "path has no query and no fragment: a route is for every query")
	case !strings.HasPrefix(path, "/"):
		l.errorf(at, "path begins with a slash: the hosts are those of the site")
	default:
		p, err := pattern.Parse(path)
		if err != nil {
			l.errorf(at, "path: %v", err)
			break
		}
		names, rest := p.Wildcards()
		return path, &Wildcards{names, rest}
	}
	return path, nil
}

func (l *loader) routeMethods(t *table) (methods []string) {
	all, ok := t.list("methods")
	list, isList := t.m["methods"].([]any)
	if ok && isList && len(list) == 0 {
		l.errorf(t.spot.child("methods").key, "methods is empty; without the key the route is for all methods")
	}
	for _, it := range all {
		_, err := pattern.Parse(it.text + " /")
		switch {
		case it.text == "" || strings.ContainsAny(it.text, " \t/"):
			err = fmt.Errorf("%q is no method", it.text)
		case it.text == http.MethodConnect:
			err = errors.New("CONNECT has no path")
		case slices.Contains(methods, it.text):
			err = fmt.Errorf("%s is there twice", it.text)
		}
		if err != nil {
			l.errorf(it.at, "methods: %v", err)
			continue
		}
		methods = append(methods, it.text)
	}
	return methods
}

// action returns the key of a route's action, "" if it does not have exactly one. Keys of
// other actions are a mistake.
func (l *loader) action(t *table, fileKeys []string) string {
	var has []string
	for _, key := range []string{"root", "proxy", "redirect", "respond"} {
		if t.m[key] != nil {
			has = append(has, key)
		}
	}
	switch len(has) {
	case 0:
		l.errorf(t.spot.key, "%s does nothing; want root, proxy, redirect or respond", t.name)
		return ""
	case 1:
	default:
		l.errorf(t.spot.key, "%s has %s; want one of them", t.name, strings.Join(has, " and "))
		return ""
	}
	for _, group := range []struct {
		action string
		keys   []string
	}{{"root", fileKeys}, {"proxy", proxyKeys}, {"redirect", []string{"status"}},
		{"respond", []string{"body", "file", "type"}}} {
		for _, key := range group.keys {
			switch {
			case t.m[key] == nil || group.action == has[0]:
			case has[0] == "proxy" && slices.Contains(sharedKeys, key):
			case key == "status" && has[0] == "respond":
				l.errorf(t.spot.child(key).key, "status is for redirect; respond has the status itself")
			default:
				action := group.action
				if slices.Contains(sharedKeys, key) {
					action = "root or proxy"
				}
				l.errorf(t.spot.child(key).key, "%s is for a route with %s, and this one has %s", key, action, has[0])
			}
		}
	}
	return has[0]
}

// respondBody is the body of a response, and its type, "" for none.
type respondBody struct {
	text []byte
	typ  string
}

// respondBody reads the body of a response with a status. It is read once: later changes
// of a file need a reload.
func (l *loader) respondBody(t *table, status int) (b respondBody) {
	text, textAt, hasText := t.str("body")
	file, fileAt, hasFile := t.str("file")
	typ, typeAt, hasType := t.str("type")
	switch {
	case hasText && hasFile:
		l.errorf(fileAt, "body and file are both given; want one of them")
	case hasText:
		b = respondBody{[]byte(text), "text/plain; charset=utf-8"}
	case hasFile:
		data, err := readPart(l.path(file))
		if err != nil {
			l.errorf(fileAt, "file: %q: %v", file, err)
		}
		b = respondBody{data, media.Type(file)}
	case hasType && t.m["body"] == nil && t.m["file"] == nil:
		l.errorf(typeAt, "type is that of a body, and there is none")
	}
	if hasType {
		b.typ = typ
		if wire.CheckField("Content-Type", typ) != nil || !strings.Contains(typ, "/") {
			l.errorf(typeAt, `type wants a media type such as "text/html; charset=utf-8"`)
		}
	}
	at := fileAt
	if hasText {
		at = textAt
	}
	if len(b.text) > 0 && (status == http.StatusNoContent || status == http.StatusResetContent ||
		status == http.StatusNotModified) {
		l.errorf(at, "a response with status %d has no body", status)
	}
	return b
}

func (l *loader) respond(status int, at Position, b respondBody) *direct.Response {
	if status < 200 || status > 599 {
		l.errorf(at, "respond wants a status from 200 to 599")
		return nil
	}
	h := http.Header{}
	if b.typ != "" {
		h.Set("Content-Type", b.typ)
	}
	return direct.NewResponse(status, h, b.text)
}
