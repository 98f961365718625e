package config

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/internal/filename"
	"github.com/chert-http/chert/internal/rfc/field"
	"github.com/chert-http/chert/internal/rfc/media"
	"github.com/chert-http/chert/middleware"
)

// This file reads what is done to responses: fields, the pages of errors, and the types of
// files.

// errorPages reads a table [errors], [site.errors] or [site.route.errors]; base's pages are
// used where it has none. own404 is where it has a page for 404 itself, nil if it has none.
func (l *loader) errorPages(t *table, base map[int]*middleware.ErrorPage) (
	pages map[int]*middleware.ErrorPage, own404 *Position) {
	e := t.table("errors")
	if e == nil {
		return base, nil
	}
	pages = make(map[int]*middleware.ErrorPage)
	maps.Copy(pages, base)
	e.get("default")
	for _, name := range slices.Sorted(maps.Keys(e.m)) {
		file, at, ok := e.str(name)
		status, known := errorStatus(name)
		if !known {
			l.errorf(e.spot.child(name).key,
				`%s: %q is neither a status from 400 to 599, "4xx", "5xx" nor "default"`, e.name, name)
			continue
		}
		if !ok {
			continue
		}
		if status == http.StatusNotFound {
			own404 = &at
		}
		page, err := l.errorPage(file)
		if err != nil {
			l.errorf(at, "%s: %v", name, err)
		}
		pages[status] = page
	}
	e.done()
	return pages, own404
}

// siteErrors reads the pages of a site or a route. not_found is the short form for files'
// 404s: where it and the pages are in different tables, those nearest to the action count.
func (l *loader) siteErrors(t *table, o *options, p *Policy) {
	pages, own404 := l.errorPages(t, p.Errors)
	p.Errors = pages
	if own404 == nil {
		return
	}
	if s, _ := t.m["not_found"].(string); s != "" {
		l.errorf(*own404, "not_found is a page for 404 too; want one of them")
	}
	o.NotFound = ""
}

// errorStatus returns the key of middleware.ErrorPagesOptions that a word stands for.
func errorStatus(s string) (int, bool) {
	switch s {
	case "default":
		return 0, true
	case "4xx":
		return 4, true
	case "5xx":
		return 5, true
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && len(s) == 3 && 400 <= n && n <= 599
}

// templateSuffix marks the file of a template.
const templateSuffix = ".tmpl"

// errorPage reads a page, nil for "". It is read once: later changes need a reload.
func (l *loader) errorPage(file string) (*middleware.ErrorPage, error) {
	if file == "" {
		return nil, nil
	}
	body, err := readPart(l.path(file))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", file, err)
	}
	name, isTemplate := strings.CutSuffix(filepath.Base(file), templateSuffix)
	p := &middleware.ErrorPage{Type: media.Type(name), Body: body, Template: isTemplate}
	if p.Type == "" {
		return nil, fmt.Errorf("%q: want a name that shows the type, such as 404.html or 404.html.tmpl", file)
	}
	pages := map[int]*middleware.ErrorPage{0: p}
	if _, err := middleware.ErrorPages(&middleware.ErrorPagesOptions{Pages: pages}); err != nil {
		text := strings.TrimPrefix(err.Error(), "middleware: ErrorPages: option Pages[0]: ")
		return nil, fmt.Errorf("%q: %s", file, text)
	}
	return p, nil
}

// fields reads headers and response_headers, which come after base's.
func (l *loader) fields(t *table, p *Policy) {
	if own := l.headers(t, field.CheckSet); len(own) > 0 {
		headers := make(map[string]string)
		maps.Copy(headers, p.Headers)
		maps.Copy(headers, own)
		p.Headers = headers
	}
	p.HeaderRules = slices.Clip(p.HeaderRules)
	name := "[[" + strings.Trim(t.name, "[]") + ".response_headers]]"
	for _, r := range t.tables("response_headers", name) {
		p.HeaderRules = append(p.HeaderRules, l.headerRule(r))
	}
}

// headerRule reads one table of response_headers.
func (l *loader) headerRule(t *table) (r middleware.HeaderRule) {
	r.Status = l.statuses(t)
	r.Set = l.fieldsOf(t, "set", field.CheckSet)
	if add := t.table("add"); add != nil {
		r.Add = make(map[string][]string)
		for _, name := range slices.Sorted(maps.Keys(add.m)) {
			all, _ := add.list(name)
			for _, it := range all {
				if err := field.CheckAdd(name, it.text); err != nil {
					l.errorf(it.at, "add: the field %q %v", name, err)
					continue
				}
				name := http.CanonicalHeaderKey(name)
				r.Add[name] = append(r.Add[name], it.text)
			}
		}
	}
	remove, _ := t.list("remove")
	for _, it := range remove {
		if err := field.CheckSet(it.text, ""); err != nil {
			l.errorf(it.at, "remove: the field %q %v", it.text, err)
			continue
		}
		r.Remove = append(r.Remove, it.text)
	}
	if t.m["set"] == nil && t.m["add"] == nil && t.m["remove"] == nil {
		l.errorf(t.spot.key, "%s does nothing; want set, add or remove", t.name)
	}
	t.done()
	return r
}

// statuses reads a status or a class, as "5xx", or a list of them.
func (l *loader) statuses(t *table) (all []int) {
	v, spot := t.get("status")
	if v == nil {
		return nil
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	if len(list) == 0 {
		l.errorf(spot.key, "status is empty; without the key the table is for every response")
	}
	for i, v := range list {
		at := spot.value
		if isList {
			at = spot.items[i].value
		}
		n := 0
		switch v := v.(type) {
		case int64:
			if 200 <= v && v <= 599 {
				n = int(v)
			}
		case string:
			if len(v) == 3 && v[1:] == "xx" && '2' <= v[0] && v[0] <= '5' {
				n = int(v[0] - '0')
			}
		}
		if n == 0 {
			l.errorf(at, `status wants numbers from 200 to 599, and classes from "2xx" to "5xx"`)
			continue
		}
		all = append(all, n)
	}
	return all
}

// fileOptions reads hidden, follow and types.
func (l *loader) fileOptions(t *table, o *options) {
	if all, ok := t.list("hidden"); ok {
		o.Hidden = make([]string, 0, len(all))
		for _, it := range all {
			if _, err := filename.NewSet([]string{it.text}); err != nil {
				l.errorf(it.at, "hidden: %v", err)
				continue
			}
			o.Hidden = append(o.Hidden, it.text)
		}
	}
	if all, ok := t.list("follow"); ok {
		o.Follow = nil
		for _, it := range all {
			dir, err := filepath.Abs(l.path(it.text))
			if err == nil {
				err = filename.CheckFollow(dir)
			}
			if err == nil {
				err = l.checks.Folder(l.path(it.text))
			}
			if err != nil {
				l.errorf(it.at, "follow: %v", err)
				continue
			}
			o.Follow = append(o.Follow, dir)
		}
	}
	types := t.table("types")
	if types == nil {
		return
	}
	all := make(map[string]string)
	maps.Copy(all, o.Types)
	for _, suffix := range slices.Sorted(maps.Keys(types.m)) {
		typ, at, ok := types.str(suffix)
		if !ok {
			continue
		}
		if err := filename.CheckType(suffix, typ); err != nil {
			if filename.CheckType(suffix, "a/b") != nil {
				at = types.spot.child(suffix).key
			}
			l.errorf(at, "types: %v", err)
			continue
		}
		all[suffix] = typ
	}
	o.Types = all
}
