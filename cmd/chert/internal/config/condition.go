package config

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/chert-http/chert/middleware"
)

// condition reads the keys of a route that say which requests of its path it is for; nil
// if there are none.
func (l *loader) condition(t *table) *middleware.Condition {
	var c middleware.Condition
	has := false
	for _, part := range []struct {
		key, field string
		to         *map[string]string
	}{{"header", "Header", &c.Header}, {"cookie", "Cookie", &c.Cookie}, {"query", "Query", &c.Query}} {
		m := t.table(part.key)
		has = has || t.m[part.key] != nil
		if m == nil {
			continue
		}
		if len(m.m) == 0 {
			l.errorf(m.spot.key, `%s is empty; want %s = { NAME = "VALUE" }, or "*" for any value`, part.key, part.key)
		}
		for _, name := range slices.Sorted(maps.Keys(m.m)) {
			value, _, ok := m.str(name)
			if !ok {
				continue
			}
			*part.to = map[string]string{name: value}
			one := c
			one.From, one.FromLocal = nil, false
			choice := middleware.Choice{When: one, Handler: http.NotFoundHandler()}
			if _, err := middleware.Choose(http.NotFoundHandler(), choice); err != nil {
				_, text, _ := strings.Cut(err.Error(), part.field+": ")
				l.errorf(m.spot.child(name).key, "%s: %s", part.key, text)
			}
		}
		*part.to = make(map[string]string)
		for name := range m.m {
			(*part.to)[name], _ = m.m[name].(string)
		}
	}
	has = has || t.m["from"] != nil
	if all, ok := t.list("from"); ok {
		c.From, c.FromLocal = l.clients("from", all)
		if len(all) == 0 && t.m["from"] != nil {
			l.errorf(t.spot.child("from").key, "from is empty, so that no client would be of it")
		}
	}
	if !has {
		return nil
	}
	return &c
}

// canonical returns a text that is the same for conditions that are written in another order, or with names of fields
// in another case.
func canonical(c *middleware.Condition) string {
	header := make(map[string]string)
	for name, value := range c.Header {
		header[http.CanonicalHeaderKey(name)] = value
	}
	var from []string
	for _, p := range c.From {
		from = append(from, p.String())
	}
	slices.Sort(from)
	return fmt.Sprintf("%q %q %q %q %v", header, c.Cookie, c.Query, from, c.FromLocal) // maps in the order of keys
}
