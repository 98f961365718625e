package pattern

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// This file explains patterns of other routers, which would be registered and never match.

// usual are the methods that are written in capitals.
var usual = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", http.MethodTrace}

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
	case m != upper && slices.Contains(usual, upper):
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
