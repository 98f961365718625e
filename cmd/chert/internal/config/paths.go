package config

import (
	"errors"
	"strings"

	"github.com/chert-http/chert/internal/filename"
	"github.com/chert-http/chert/middleware"
)

// try reads which files a path may be: try, or its short form clean_urls. Each replaces the
// other one of base.
func (l *loader) try(t *table, o *options) {
	all, hasTry := t.list("try")
	before := o.CleanURLs
	t.boolean("clean_urls", &o.CleanURLs)
	switch {
	case t.m["try"] != nil && t.m["clean_urls"] == true:
		l.errorf(t.spot.child("clean_urls").value,
			`clean_urls is short for try = ["{path}", "{path}.html", "{path}/"]; want one of them`)
		return
	case hasTry:
		o.Try, o.CleanURLs = nil, false
	case o.CleanURLs && !before:
		o.Try = nil
	}
	for i, it := range all {
		_, err := filename.ParseCandidate(it.text)
		if err == nil && strings.HasPrefix(it.text, "=") && i < len(all)-1 {
			err = errors.New("nothing can follow a status")
		}
		if err != nil {
			l.errorf(it.at, "try: %v", err)
			continue
		}
		o.Try, o.tryAt = append(o.Try, it.text), it.at
	}
}

// lastTried returns the file at the end of try that has the same name for every request: it
// must exist. "" if there is none.
func lastTried(try []string) string {
	if len(try) == 0 {
		return ""
	}
	last := try[len(try)-1]
	if strings.Contains(last, "{path}") || last[0] == '=' || strings.HasSuffix(last, "/") {
		return ""
	}
	return strings.TrimPrefix(last, "/")
}

// rewrite reads the tables of that key.
func (l *loader) rewrite(t *table) (all []middleware.RewriteRule) {
	for _, r := range t.tables("rewrite", "[["+strings.Trim(t.name, "[]")+".rewrite]]") {
		from, fromAt, hasFrom := r.str("from")
		to, toAt, hasTo := r.str("to")
		r.done()
		if r.m["from"] == nil || r.m["to"] == nil {
			l.errorf(r.spot.key, `%s wants from, as in "^/old/([0-9]+)$", and to, as in "/new/{1}"`, r.name)
		}
		if !hasFrom || !hasTo {
			continue
		}
		rule := middleware.RewriteRule{From: from, To: strings.ReplaceAll(to, "$$", "$")}
		one := &middleware.RewriteOptions{Rules: []middleware.RewriteRule{rule}}
		if _, err := middleware.Rewrite(one); err != nil {
			at, text := fromAt, strings.TrimPrefix(err.Error(), "middleware: Rewrite: Rules[0]: option ")
			if strings.HasPrefix(text, "To: ") {
				at = toAt
			}
			l.errorf(at, "%s", strings.ToLower(text[:1])+text[1:])
			continue
		}
		if name := foreign.FindString(strings.ReplaceAll(to, "$$", "")); name != "" {
			l.errorf(toAt, "to: %q is not replaced here: want {1} or {name} of the groups, {path} or {query}, "+
				"or $$ for a $", name)
		}
		all = append(all, rule)
	}
	return all
}
