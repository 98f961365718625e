package main

import (
	"path"
	"regexp"
	"slices"
)

// pages are what users of the command read, in archives and packages.
var pages = []string{"docs/chert.toml", "docs/command.md", "docs/config.md", "docs/deployment.md", "docs/from-caddy.md",
	"docs/from-nginx.md", "docs/http3.md", "docs/limits.md", "docs/observability/page.md", "docs/proxy.md", "docs/scale.md",
	"docs/tls.md"}

// linked matches a link to a file, up to its fragment or end.
var linked = regexp.MustCompile(`\]\([^)\s#:]+[)#]`)

// page reads a page of the commit. Its links to other files than packed lead to the web.
func (p *product) page(name string, packed []string) ([]byte, error) {
	text, err := p.text(name)
	return linked.ReplaceAllFunc(text, func(link []byte) []byte {
		begin, end := len("]("), len(link)-1
		to := path.Join(path.Dir(name), string(link[begin:end]))
		if slices.Contains(packed, to) {
			return link
		}
		return []byte("](" + homepage + "/blob/" + p.commit + "/" + to + string(link[end:]))
	}), err
}
