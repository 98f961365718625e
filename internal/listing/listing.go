package listing

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// An Entry is one name in a folder.
type Entry struct {
	Name     string    // raw bytes, as in the file system
	Dir      bool      // a folder, or a link to one
	Link     bool      // a symbolic link; the other fields are those of its target
	Size     int64     // in bytes; meaningless for a folder
	Modified time.Time // zero if not known
}

// nameable reports whether a relative URL can lead to the entry. No file system
// has other names; a third-party fs.FS may. "." and ".." would lead elsewhere
// however they are encoded.
func (e *Entry) nameable() bool {
	return e.Name != "" && e.Name != "." && e.Name != ".." && strings.IndexByte(e.Name, '/') < 0 &&
		strings.IndexByte(e.Name, 0) < 0
}

// A Column is what a listing is sorted by.
type Column uint8

const (
	Name Column = iota // natural order: "file 9" before "File 10"
	Size
	Modified
)

// The values of sort in a query, by Column.
var columnNames = [...]string{Name: "name", Size: "size", Modified: "time"}

// An Order is how a listing is sorted; the zero value is by name, ascending.
// There are six, so a cache may include it in its key.
type Order struct {
	By   Column
	Desc bool
}

// ParseOrder parses sort=name|size|time and order=asc|desc in the query of a
// URL. Missing and unknown values mean the default. It does not allocate.
func ParseOrder(rawQuery string) Order {
	var o Order
	for rawQuery != "" {
		var pair string
		pair, rawQuery, _ = strings.Cut(rawQuery, "&")
		switch pair {
		case "sort=name":
			o.By = Name
		case "sort=size":
			o.By = Size
		case "sort=time":
			o.By = Modified
		case "order=asc":
			o.Desc = false
		case "order=desc":
			o.Desc = true
		}
	}
	return o
}

// attribute returns the query that ParseOrder parses as o, in the form for an
// href: with its question mark and &amp;. It is "" for the default.
func (o Order) attribute() string {
	if o == (Order{}) {
		return ""
	}
	q := "?sort=" + columnNames[o.By]
	if o.Desc {
		q += "&amp;order=desc"
	}
	return q
}

// A Page is the listing of one folder. Its methods do not change it and are
// safe for concurrent use.
type Page struct {
	// Path is the folder's URL path, decoded but not cleaned, and ends in "/".
	// Each slash counts: relative links go up as many folders as it has.
	Path string
	// Entries are in any order. Entries that no URL can name are omitted: "",
	// ".", "..", or with a slash or NUL in it.
	Entries []Entry
	Order   Order
	// Root omits the link to the parent and those in Path.
	Root bool
	// Truncated adds a note that the folder has more entries than these.
	Truncated bool
}

// sorted returns the entries that can be named, folders first, in p.Order.
// Folders have no size and stay in the order of their names then.
func (p *Page) sorted() []*Entry {
	list := make([]*Entry, 0, len(p.Entries))
	for i := range p.Entries {
		if e := &p.Entries[i]; e.nameable() {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, p.Order.compare)
	return list
}

// room estimates how many bytes the rows of list take; row is the size of one
// without its name and URL. Growing step by step would cost several times as
// much.
func room(list []*Entry, row int) int {
	n := 0
	for _, e := range list {
		n += 2*len(e.Name) + row
	}
	return n
}

func (o Order) compare(a, b *Entry) int {
	if a.Dir != b.Dir {
		if a.Dir {
			return -1
		}
		return +1
	}
	c := 0
	switch o.By {
	case Size:
		if !a.Dir {
			c = cmp.Compare(a.Size, b.Size)
		}
	case Modified:
		c = a.Modified.Compare(b.Modified)
	default:
		c = compareNames(a.Name, b.Name)
	}
	if o.Desc {
		c = -c
	}
	if c == 0 && o.By != Name {
		c = compareNames(a.Name, b.Name)
	}
	return c
}
