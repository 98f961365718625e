package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// doc collects the mistakes in one file.
type doc struct {
	file     string
	problems Problems
	included []*doc
	// isIncluded: it is one of those of another.
	isIncluded bool
	known      map[string][]string // if not nil, gets the keys of each table
	tables     map[string][]string // of keysOfTables; nil until it is needed
}

func (d *doc) errorf(at Position, format string, args ...any) {
	d.problems = append(d.problems, Problem{File: d.file, At: at, Message: fmt.Sprintf(format, args...)})
}

// all returns the mistakes in the file and then those in what it includes, each in the order
// of its file.
func (d *doc) all() (all Problems) {
	for _, one := range append([]*doc{d}, d.included...) {
		one.problems.sort()
		all = append(all, one.problems...)
	}
	return all
}

// mark is a position, and the file that it is in.
type mark struct {
	*doc
	Position
}

func (d *doc) mark(at Position) mark { return mark{d, at} }

// from describes where m is, in a message about d.
func (m mark) from(d *doc) string {
	if m.doc == d {
		return fmt.Sprintf("line %d", m.Line)
	}
	return fmt.Sprintf("%s:%d:%d", m.file, m.Line, m.Column)
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
		hint := t.doc.insteadOfKey(key)
		if near := nearest(key, t.asked); near != "" && hint == "" {
			if array := "[[" + near + "]]"; near == "site" || near == "redirect" {
				hint = "; did you mean " + array + "?"
			} else {
				hint = fmt.Sprintf("; did you mean %q?", near)
			}
		} else if tables := t.doc.tablesWith(plainWord(key)); hint == "" && len(tables) > 0 {
			hint = "; " + plainWord(key) + " is a key of " + list(tables)
		}
		t.doc.errorf(t.spot.child(key).key, "unknown key %q in %s%s", key, t.name, hint)
	}
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
	if t.name != topOfFile {
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

// nearest returns the known word that a mistyped one may mean, "" if none is
// near.
func nearest(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		plain := func(s string) string { return strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(s)) }
		if d := distance(plain(word), k); d < least && d < len(k)/2 {
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
