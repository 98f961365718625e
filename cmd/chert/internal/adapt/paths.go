package adapt

import (
	"regexp"
	"slices"
	"strings"
)

// tryFiles translates try_files: names of files, of which the last may be a status.
func (t *inServer) tryFiles(d *directive, key func(key, value string)) {
	var all []string
	for i, w := range d.words[1:] {
		w = strings.ReplaceAll(w, "$uri", "{path}")
		if w == "" {
			continue
		}
		switch {
		case strings.ContainsAny(w, "$@?"):
			t.note(d.line, "try_files %s is left out: want try, with {path} and names of files", w)
			return
		case w[:min(1, len(w))] == "=" && i < len(d.words)-2:
			t.note(d.line, "try_files has a status that is not the last")
			return
		}
		all = append(all, w)
	}
	if slices.Equal(all, []string{"{path}", "=404"}) || slices.Equal(all, []string{"{path}", "{path}/", "=404"}) {
		return // what a folder does
	}
	key("try", list(all))
}

var captures = regexp.MustCompile(`\$([1-9])`)

// rewrite translates rewrite, without a redirect.
func (t *inServer) rewrite(d *directive, table func(name string, lines ...string)) {
	redirects := strings.HasPrefix(d.arg(1), "http") || d.arg(2) == "redirect" || d.arg(2) == "permanent"
	_, err := regexp.Compile(d.arg(0))
	if err != nil || len(d.words) < 3 || redirects || strings.Contains(captures.ReplaceAllString(d.arg(1), ""), "$") {
		t.note(d.line, "rewrite is left out: want [[site.rewrite]] or a route with redirect")
		return
	}
	table("[site.rewrite]", "from = "+quote(d.arg(0)), "to = "+quote(captures.ReplaceAllString(d.arg(1), "{$1}")))
}

// errorPage translates error_page with a file.
func (t *inServer) errorPage(d *directive, l *level) {
	last := len(d.words) - 1
	uri := d.words[last]
	root, ok := t.folders[uri]
	if !ok {
		root = t.root
	}
	if !strings.HasPrefix(uri, "/") || strings.Contains(uri, "$") {
		t.note(d.line, "error_page is left out: want the name of a file")
		return
	}
	var lines []string
	for _, status := range d.words[1:last] {
		if n, ok := number(status); !ok || n < 400 || n > 599 {
			t.note(d.line, "error_page %s is left out: pages have the status of the error", status)
			continue
		}
		lines = append(lines, status+" = "+quote(join(root, uri)))
	}
	if lines != nil {
		l.table(l.name+".errors", lines...)
	}
}
