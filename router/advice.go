package router

import (
	"fmt"
	"net/http"
	"strings"
)

// This file explains mistakes at registration: patterns of other routers, which
// would be registered and never match, and how to resolve a conflict.

// checkMethod rejects what other routers accept as a method. Methods are
// case-sensitive (RFC 9110 section 9.1), so "get" would match no client.
func checkMethod(m string) error {
	upper := strings.ToUpper(m)
	switch {
	case m == "":
		return nil
	case m == "*":
		return fmt.Errorf(`method "*" is literal here; leave the method out to match all`)
	case !validMethod(m):
		return fmt.Errorf("invalid method %q", m)
	case m != upper && (methodNumber(upper) < usualMethods || upper == http.MethodTrace):
		return fmt.Errorf("methods are case-sensitive: write %q, not %q", upper, m)
	}
	return nil
}

// checkSegments rejects segments that are wildcards in other routers, ":id" and
// "*". With its first byte percent-encoded such a segment is a literal:
// "%3Aid", "%2A".
func checkSegments(path string) error {
	segments := strings.Split(path, "/")
	first, taken := "", map[string]bool{}
	for i, text := range segments {
		if text == "" || text[0] != ':' && text[0] != '*' {
			continue
		}
		if first == "" {
			first = text
		}
		rest := text[0] == '*' && i == len(segments)-1
		name := identifier(text[1:])
		switch {
		case name == "" && rest:
			name = "path"
		case name == "":
			name = "id"
		}
		for n := 2; taken[name]; n++ {
			name = fmt.Sprint(strings.TrimRight(name, "0123456789"), n)
		}
		taken[name] = true
		if rest {
			name += "..."
		}
		segments[i] = "{" + name + "}"
	}
	if first == "" {
		return nil
	}
	return fmt.Errorf("%q is literal here; write %q, or \"%%%X%s\" for a literal segment",
		first, strings.Join(segments, "/"), first[0], first[1:])
}

// identifier is the Go identifier that s begins with, "" if there is none.
func identifier(s string) string {
	n := 0
	for i, c := range s {
		if !validName(s[:i+len(string(c))]) {
			break
		}
		n = i + len(string(c))
	}
	return s[:n]
}

// checkPrefix rejects the prefix of a group or mount without its leading slash:
// it would be taken for a host that no request names. A host of one label,
// other than localhost, must be followed by a slash and nothing else.
func checkPrefix(prefix string) error {
	host, rest, slash := strings.Cut(prefix, "/")
	if host == "" || host == "localhost" || strings.ContainsAny(host, ".:[{") || slash && rest == "" {
		return nil
	}
	return fmt.Errorf("the prefix %q begins with the host %q; write %q for a path, or %q for the host", prefix, host,
		"/"+prefix, host+"/")
}

// wayOut proposes replacements for two patterns of which one matches more
// methods and the other more paths; "" if there are none.
func wayOut(a, b *Route) string {
	if m := methods(a.pattern.method, b.pattern.method); m&onlyP != 0 {
		a, b = b, a // a has fewer methods and more paths
	}
	var ways []string
	if end := a.pattern.last(); end.kind == multi && end.text == "" {
		page := a.text + "{$}"
		if compatible(page, b.text) {
			ways = append(ways, fmt.Sprintf("write %q for the one page", page))
		}
	}
	if a.pattern.method != "" && b.pattern.method == "" {
		narrow := a.pattern.method + " " + strings.TrimLeft(b.text, " \t")
		if _, mount := b.own.(*mounted); compatible(narrow, a.text) && mount {
			ways = append(ways, fmt.Sprintf("Mount(%q)", strings.TrimSuffix(narrow, "/")))
		} else if compatible(narrow, a.text) {
			ways = append(ways, fmt.Sprintf("%q", narrow))
		}
	}
	if len(ways) == 0 {
		return ""
	}
	text := strings.Join(ways, ", or ")
	if !strings.HasPrefix(text, "write") {
		text = "write " + text
	}
	return "; " + text
}

// compatible reports whether two patterns may be registered together.
func compatible(s, t string) bool {
	p, err := parse(s)
	if err != nil {
		return false
	}
	q, err := parse(t)
	return err == nil && !conflict(p, q)
}
