package listing

import (
	"slices"
	"strconv"
)

// AppendJSON appends the listing as one JSON object:
//
//	{"path": "/a/", "entries": [
//	  {"name": "b c.txt", "url": "./b%20c.txt", "type": "file", "link": false, "size": 12,
//	   "modified": "2026-11-20T12:30:00Z"}
//	]}
//
// A name that is not UTF-8 has U+FFFD in it; url, relative to the folder, is
// always exact. Type is "file" or "directory". Size is null for a directory,
// modified (RFC 3339, UTC, whole seconds) if it is not known. An incomplete
// listing has "truncated": true.
func (p *Page) AppendJSON(b []byte) []byte {
	list := p.sorted()
	b = slices.Grow(b, room(list, 100))
	b = append(b, `{"path":`...)
	b = appendJSON(b, p.Path)
	if p.Truncated {
		b = append(b, `,"truncated":true`...)
	}
	b = append(b, `,"entries":[`...)
	for i, e := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSONEntry(append(b, '\n'), e)
	}
	return append(b, "\n]}\n"...)
}

func appendJSONEntry(b []byte, e *Entry) []byte {
	b = append(b, `{"name":`...)
	b = appendJSON(b, e.Name)
	b = append(b, `,"url":"`...)
	b = appendURL(b, e)
	if e.Dir {
		b = append(b, `","type":"directory","link":`...)
	} else {
		b = append(b, `","type":"file","link":`...)
	}
	b = strconv.AppendBool(b, e.Link)
	b = append(b, `,"size":`...)
	if e.Dir || e.Size < 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, e.Size, 10)
	}
	b = append(b, `,"modified":`...)
	if !dated(e) {
		return append(b, "null}"...)
	}
	b = append(b, '"')
	b = appendTime(b, e)
	return append(b, `"}`...)
}
