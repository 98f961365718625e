package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// A Target is where a redirect leads, in parts.
type Target []Part

// A Part of a target is text, or a placeholder.
type Part struct {
	Text  string // "" for a placeholder
	Name  string // of a placeholder: "host", "uri", or a wildcard of the route's path
	Query bool   // it is after the "?" or "#"
	Rest  bool   // of a placeholder: the wildcard that matches the rest of the path
}

// Wildcards are those of a route's path.
type Wildcards struct {
	Names []string
	Rest  bool // the last one matches the rest of the path, which may be empty
}

func (w *Wildcards) isRest(name string) bool {
	return w != nil && w.Rest && name == w.Names[len(w.Names)-1]
}

// ParseTarget parses the target of a redirect: an absolute URL of http or https. {host}
// in it stands for the request's host without the port, {uri} for its path and query,
// including the initial slash. With wildcards, of a route, it may also be a path, and
// their names are placeholders too.
//
// {uri} and the wildcards must not be part of the authority: clients choose them, and
// could name any host there.
func ParseTarget(to string, w *Wildcards) (Target, error) {
	target, err := placeholders(to, w)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(to, "{") {
		return nil, wanted(w != nil)
	}
	// Once with all that may be empty empty: a path must not begin with two slashes then.
	for _, rest := range []string{"rest", ""} {
		if err := checkExample(target.example(rest), w != nil); err != nil {
			return nil, err
		}
	}
	if host := authority(target); strings.ContainsAny(host, "{}") {
		return nil, errors.New("the host may contain {host} and no other placeholder: clients choose the others")
	}
	if name := foreign.FindString(to); name != "" {
		return nil, fmt.Errorf("%q is not replaced here: want {host} or {uri}, or %%24 for a $", name)
	}
	for _, c := range []byte(to) {
		if c <= ' ' || c >= 0x7f {
			return nil, errors.New("spaces, control characters and what is not ASCII must be percent-encoded")
		}
	}
	for i, p := range target {
		switch {
		case p.Name == "uri" && i != len(target)-1:
			return nil, errors.New("{uri} holds the query, so nothing can follow it")
		case p.Name == "uri" && p.Query:
			return nil, errors.New("{uri} holds the path, so it cannot come into a query or fragment")
		}
	}
	return target, nil
}

// foreign are variables of nginx and groups of a match there, which are not replaced here.
var foreign = regexp.MustCompile(`\$(?:[0-9]|(?:host|http_host|server_name|scheme|request_uri|uri|document_uri|args|` +
	`is_args|query_string)\b)`)

// placeholders splits a target.
func placeholders(to string, w *Wildcards) (target Target, err error) {
	names := []string{"host", "uri"}
	if w != nil {
		names = append(names, w.Names...)
	}
	query := false
	for to != "" {
		text, rest, found := strings.Cut(to, "{")
		name, after, closed := strings.Cut(rest, "}")
		if strings.Contains(text, "}") || found && (!closed || !slices.Contains(names, name)) {
			return nil, fmt.Errorf("only %s can be filled in", oneOf(names))
		}
		if text != "" {
			target = append(target, Part{Text: text, Query: query})
			query = query || strings.ContainsAny(text, "?#")
		}
		if found {
			target = append(target, Part{Name: name, Query: query, Rest: w.isRest(name)})
		}
		to = after
	}
	return target, nil
}

func oneOf(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = "{" + name + "}"
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " and " + all[last]
}

// example returns the target with all placeholders replaced. rest stands for the wildcard
// that matches the rest of the path.
func (t Target) example(rest string) string {
	var b strings.Builder
	for _, p := range t {
		switch {
		case p.Text != "":
			b.WriteString(p.Text)
		case p.Name == "host":
			b.WriteString("host.example")
		case p.Name == "uri":
			b.WriteString("/uri")
		case p.Rest:
			b.WriteString(rest)
		default:
			b.WriteString("x")
		}
	}
	return b.String()
}

// checkExample checks what a target may become.
func checkExample(to string, path bool) error {
	u, err := url.Parse(to)
	switch {
	case err != nil:
		return errors.New("this is no URL")
	case path && NamesHost(to):
		return errors.New("a path that begins with two slashes, or may, names a host")
	case path && strings.HasPrefix(to, "/"):
		return nil
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return wanted(path)
	case u.User != nil:
		return errors.New("a user name or password is not permitted")
	}
	return nil
}

func wanted(path bool) error {
	if path {
		return errors.New(`want a path, as in "/new/{name}", or an absolute URL, as in "https://example.com{uri}"`)
	}
	return errors.New(`want an absolute URL, as in "https://example.com{uri}"`)
}

// NamesHost reports whether clients take what looks like a path for a host: browsers
// treat a backslash as a slash.
func NamesHost(path string) bool {
	return len(path) > 1 && path[0] == '/' && (path[1] == '/' || path[1] == '\\')
}

// authority returns the authority of an absolute URL, with the placeholders other than
// {host} that are in it, in braces; "" of a path.
func authority(t Target) string {
	var b strings.Builder
	for _, p := range t {
		switch p.Name {
		case "":
			b.WriteString(p.Text)
		case "host":
		case "uri":
			b.WriteString("/")
		default:
			b.WriteString("{" + p.Name + "}")
		}
	}
	_, rest, ok := strings.Cut(b.String(), "://")
	if !ok {
		return ""
	}
	if end := strings.IndexAny(rest, `/\?#`); end >= 0 {
		rest = rest[:end]
	}
	return rest
}
