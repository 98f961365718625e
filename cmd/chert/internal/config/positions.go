package config

import (
	"bytes"
	"slices"

	"github.com/pelletier/go-toml/v2/unstable"
)

// spot is the position of a value, and of the values that it contains.
type spot struct {
	key, value Position
	keys       map[string]*spot // of a table
	items      []*spot          // of an array, or of an array of tables
}

// child returns the spot of a key; it makes one if there is none.
func (s *spot) child(key string) *spot {
	c := s.keys[key]
	if c == nil {
		c = new(spot)
		if s.keys == nil {
			s.keys = make(map[string]*spot)
		}
		s.keys[key] = c
	}
	return c
}

// table returns the table that keys belong to: for an array of tables, the
// last.
func (s *spot) table() *spot {
	if n := len(s.items); n > 0 {
		return s.items[n-1]
	}
	return s
}

// finder is a pass over a document.
type finder struct {
	unstable.Parser
	file  string
	lines []int // offsets at which lines begin
}

// positions returns the positions of everything in a file, which is "" for the one that
// includes others. data must be a valid document.
func positions(file string, data []byte) *spot {
	f := finder{file: file, lines: []int{0}}
	for i := 0; ; {
		n := bytes.IndexByte(data[i:], '\n')
		if n < 0 {
			break
		}
		i += n + 1
		f.lines = append(f.lines, i)
	}
	f.Reset(data)
	root := new(spot)
	at := root
	for f.NextExpression() {
		e := f.Expression() // and everything below it: valid until the next one
		switch e.Kind {
		case unstable.Table:
			at = f.descend(root, e.Key()).table()
		case unstable.ArrayTable:
			s := f.descend(root, e.Key())
			item := &spot{key: s.key, value: s.key}
			s.items = append(s.items, item)
			at = item
		case unstable.KeyValue:
			f.keyValue(at, e)
		}
	}
	return root
}

// descend follows a dotted key from a table, and returns where it leads.
func (f *finder) descend(s *spot, key unstable.Iterator) *spot {
	for key.Next() {
		s = s.table().child(string(key.Node().Data))
		at := f.position(key.Node())
		if s.key.Line == 0 || key.IsLast() {
			s.key, s.value = at, at
		}
	}
	return s
}

func (f *finder) keyValue(s *spot, e *unstable.Node) {
	s = f.descend(s, e.Key())
	f.value(s, e.Value())
}

// value records the position of a value. An array or an inline table has that
// of its key: the parser does not report where it begins.
func (f *finder) value(s *spot, v *unstable.Node) {
	switch v.Kind {
	case unstable.Array:
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.Comment {
				continue
			}
			item := &spot{key: s.key, value: s.value}
			f.value(item, it.Node())
			s.items = append(s.items, item)
		}
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.KeyValue {
				f.keyValue(s, it.Node())
			}
		}
	default:
		s.value = f.position(v)
	}
}

// position does what Parser.Shape does, without counting the lines from the
// beginning each time.
func (f *finder) position(n *unstable.Node) Position {
	offset := int(n.Raw.Offset)
	line, found := slices.BinarySearch(f.lines, offset)
	if found {
		line++
	}
	return Position{File: f.file, Line: line, Column: offset - f.lines[line-1] + 1}
}
