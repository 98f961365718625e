package router

import (
	"fmt"
	"strings"

	"github.com/chert-http/chert/internal/pattern"
)

// This file explains mistakes at registration: patterns of other routers, which
// would be registered and never match, and how to resolve a conflict.

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
	if a.pattern.MoreMethods(b.pattern) {
		a, b = b, a // a has fewer methods and more paths
	}
	var ways []string
	if end := a.pattern.Last(); end.Kind == pattern.Multi && end.Text == "" {
		page := a.text + "{$}"
		if compatible(page, b.text) {
			ways = append(ways, fmt.Sprintf("write %q for the one page", page))
		}
	}
	if a.pattern.Method != "" && b.pattern.Method == "" {
		narrow := a.pattern.Method + " " + strings.TrimLeft(b.text, " \t")
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
	p, err := pattern.Parse(s)
	if err != nil {
		return false
	}
	q, err := pattern.Parse(t)
	return err == nil && p.Conflict(q) == ""
}
