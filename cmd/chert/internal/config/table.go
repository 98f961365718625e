package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// doc collects the mistakes in a file and those that it includes.
type doc struct {
	file     string
	problems Problems
	known    map[string][]string // if not nil, gets the keys of each table
	tables   map[string][]string // of keysOfTables; nil until it is needed
}

func (d *doc) errorf(at Position, format string, args ...any) {
	file := d.file
	if at.File != "" {
		file = at.File
	}
	d.problems = append(d.problems, Problem{File: file, At: at, Message: fmt.Sprintf(format, args...)})
}

// A table is read key by key. A key that was never requested is unknown; done
// reports it. A value of the wrong type is reported and treated as missing.
type table struct {
	doc   *doc
	name  string // as in the file: "[[site]]"
	m     map[string]any
	spot  *spot
	asked []string
}

// file returns the file that t is in, "" for the one that includes others.
func (t *table) file() string { return t.spot.key.File }

// get returns a value and its position, nil if the key is missing.
func (t *table) get(key string) (any, *spot) {
	t.asked = append(t.asked, key)
	v, ok := t.m[key]
	if !ok {
		return nil, nil
	}
	return v, t.spot.child(key)
}

// done reports the keys that were never requested.
func (t *table) done() {
	if t.doc.known != nil {
		t.doc.known[t.name] = t.asked
	}
	for _, key := range slices.Sorted(maps.Keys(t.m)) {
		if slices.Contains(t.asked, key) {
			continue
		}
		hint := t.hint(key)
		t.doc.errorf(t.spot.child(key).key, "unknown key %q in %s%s", key, t.name, hint)
	}
}

// hint returns the end of the message about an unknown key, "" if nothing is known.
func (t *table) hint(key string) string {
	near := Nearest(key, t.asked)
	meant := fmt.Sprintf("; did you mean %q?", near)
	if near == "site" || near == "redirect" {
		meant = "; did you mean [[" + near + "]]?"
	}
	switch hint := t.doc.insteadOfKey(key); {
	case t.name == topOfIncluded && slices.Contains(t.doc.keysOfTables()[topOfFile], key):
		return "; it belongs in the file that includes this one"
	case insteadIn(t.name, key) != "":
		return "; " + insteadIn(t.name, key)
	case t.ofSite(key) != "":
		return "; want " + t.ofSite(key)
	case near != "" && !slices.Contains(withServerHints, t.name) && distance(key, near) == 1:
		return meant // what other servers call so is not for this table
	case hint != "":
		return hint
	case near != "":
		return meant
	}
	if tables := t.doc.tablesWith(plainWord(key)); len(tables) > 0 {
		return "; " + plainWord(key) + " is a key of " + list(tables)
	}
	return ""
}

// ofSite returns what a table at the top of the file is written as if it belongs to a site, "" for others.
func (t *table) ofSite(key string) string {
	if t.name != topOfFile && t.name != topOfIncluded || !slices.Contains(t.doc.keysOfTables()["[[site]]"], key) {
		return ""
	}
	switch t.m[key].(type) {
	case map[string]any:
		return "[site." + key + "], after the [[site]] that it is for"
	case []any:
		if isTables(t.m[key]) {
			return "[[site." + key + "]], after the [[site]] that it is for"
		}
	}
	return ""
}

// isTables reports whether v is a list of tables.
func isTables(v any) bool {
	list, ok := v.([]any)
	return ok && len(list) > 0 && !slices.ContainsFunc(list, func(e any) bool {
		_, ok := e.(map[string]any)
		return !ok
	})
}

func (t *table) wrongType(key string, at Position, want string, got any) {
	t.doc.errorf(at, "%s wants %s, not %s", key, want, typeName(got))
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "true or false"
	case int64:
		return "a number"
	case float64:
		return "a number with a fraction"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}

func (t *table) str(key string) (s string, at Position, ok bool) {
	v, spot := t.get(key)
	if v == nil {
		return "", Position{}, false
	}
	if s, ok = v.(string); !ok {
		t.wrongType(key, spot.value, "a string", v)
	}
	return s, spot.value, ok
}

func (t *table) boolean(key string, to *bool) {
	v, spot := t.get(key)
	if v == nil {
		return
	}
	b, ok := v.(bool)
	if !ok {
		t.wrongType(key, spot.value, "true or false", v)
		return
	}
	*to = b
}

// item is a string of a list.
type item struct {
	text string
	at   Position
}

// list reads a list of strings; a single one needs no brackets.
func (t *table) list(key string) (all []item, ok bool) {
	v, spot := t.get(key)
	if v == nil {
		return nil, false
	}
	switch v := v.(type) {
	case string:
		return []item{{v, spot.value}}, true
	case []any:
		all = make([]item, 0, len(v))
		for i, e := range v {
			s, ok := e.(string)
			if !ok {
				t.wrongType(key, spot.items[i].value, "a list of strings", e)
				continue
			}
			all = append(all, item{s, spot.items[i].value})
		}
		return all, true
	}
	t.wrongType(key, spot.value, "a string or a list of strings", v)
	return nil, false
}

func (t *table) duration(key string) (d time.Duration, ok bool) {
	v, spot := t.get(key)
	if v == nil {
		return 0, false
	}
	s, isString := v.(string)
	d, err := time.ParseDuration(s)
	if !isString || err != nil || d < 0 {
		t.doc.errorf(spot.value, `%s wants a time such as "30s" or "1m30s"`, key)
		return 0, false
	}
	return d, true
}

// size reads a number of bytes.
func (t *table) size(key string) (n int64, at Position, ok bool) {
	v, spot := t.get(key)
	if v == nil {
		return 0, Position{}, false
	}
	at = spot.value
	switch v := v.(type) {
	case int64:
		n, ok = v, v >= 0 && v <= MaxSize
	case string:
		var err error
		n, err = ParseSize(v)
		ok = err == nil
	}
	if !ok {
		t.doc.errorf(at, "%s %s", key, errSize)
	}
	return n, at, ok
}

func (t *table) number(key string) (n int64, at Position, ok bool) {
	v, spot := t.get(key)
	if v == nil {
		return 0, Position{}, false
	}
	if n, ok = v.(int64); !ok {
		t.wrongType(key, spot.value, "a number", v)
	}
	return n, spot.value, ok
}

// count reads a number within bounds; nil if there is none.
func (t *table) count(key string, least, most int64) *int {
	n, at, ok := t.number(key)
	if !ok {
		return nil
	}
	if n < least || n > most {
		t.doc.errorf(at, "%s wants a number from %d to %d", key, least, most)
	}
	i := int(n)
	return &i
}

// table returns the table of a key, nil if it is missing.
func (t *table) table(key string) *table {
	v, spot := t.get(key)
	if v == nil {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		t.wrongType(key, spot.value, "a table", v)
		return nil
	}
	name := "[" + key + "]"
	if t.name != topOfFile && t.name != topOfIncluded {
		name = "[" + strings.Trim(t.name, "[]") + "." + key + "]"
	}
	return &table{doc: t.doc, name: name, m: m, spot: spot}
}

// tables returns the tables of a key. name is what messages call each.
func (t *table) tables(key, name string) (all []*table) {
	v, spot := t.get(key)
	if v == nil {
		return nil
	}
	list, ok := v.([]any)
	if !ok && key == "site" && onlyTables(v) {
		t.doc.errorf(spot.key, "%s", errNoSiteBefore)
		return nil
	}
	if !ok {
		t.doc.errorf(spot.key, "%s is written with two brackets: %s", key, name)
		return nil
	}
	for i, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			t.wrongType(key, spot.items[i].value, "tables", e)
			continue
		}
		all = append(all, &table{doc: t.doc, name: name, m: m, spot: spot.items[i]})
	}
	return all
}

// errNoSiteBefore is about [[site.route]] and the like without a [[site]] before them.
const errNoSiteBefore = "this table is of a site, and there is no [[site]] before it; want [[site]] with hosts first"

// onlyTables reports whether v is a table that has tables and nothing else, as that of [[site.route]] has.
func onlyTables(v any) bool {
	m, ok := v.(map[string]any)
	for _, inner := range m {
		_, isTable := inner.(map[string]any)
		ok = ok && (isTable || isTables(inner))
	}
	return ok && len(m) > 0
}

// Nearest returns the known word that a mistyped one may mean, "" if none is
// near.
func Nearest(word string, known []string) string {
	best, least := "", 3
	plain := func(s string) string { return strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(s)) }
	for _, k := range known {
		if d := distance(plain(word), plain(k)); d < least && d < len(k)/2 {
			best, least = k, d
		}
	}
	return best
}

// distance returns how many letters must be changed, added or removed
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
