package listing

import (
	"math"
	"slices"
	"strings"
)

// AppendHTML appends the listing as an HTML page in UTF-8.
func (p *Page) AppendHTML(b []byte) []byte {
	list := p.sorted()
	b = slices.Grow(b, len(style)+len(icons)+len(script)+2<<10+room(list, 200))
	b = append(b, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<title>`...)
	b = appendText(append(b, "Index of "...), p.Path, "", "")
	b = append(b, `</title>
<link rel="icon" href="data:,"/>
<style>`...)
	b = append(b, style...)
	b = append(b, "</style>\n</head>\n<body>\n"...)
	b = append(b, icons...)
	b = p.appendCrumbs(b)
	b = p.appendTop(b, list)
	b = append(b, "<main>\n<table>\n<thead>\n<tr>"...)
	b = p.appendHeading(b, Name, "Name")
	b = p.appendHeading(b, Size, "Size")
	b = p.appendHeading(b, Modified, "Modified, UTC")
	b = append(b, "</tr>\n</thead>\n<tbody>\n"...)
	query := p.Order.attribute()
	if !p.Root {
		b = append(b, `<tr><th scope="row" colspan="3"><a href="../`...)
		b = append(b, query...)
		b = append(b, `"><svg aria-hidden="true"><use href="#u"/></svg>Parent folder</a></th></tr>`+"\n"...)
	}
	for _, e := range list {
		b = appendRow(b, e, query)
	}
	if len(list) == 0 {
		b = append(b, `<tr><td class="none" colspan="3">This folder is empty.</td></tr>`+"\n"...)
	}
	b = append(b, "</tbody>\n</table>\n</main>\n"...)
	b = p.appendFooter(b)
	b = append(b, "<script>"...)
	b = append(b, script...)
	return append(b, "</script>\n</body>\n</html>\n"...)
}

// appendCrumbs appends the path, each folder with a link that goes up to it.
// The links are relative, since a prefix may have been removed from p.Path.
func (p *Page) appendCrumbs(b []byte) []byte {
	b = append(b, "<nav aria-label=\"Path\">\n<ol>\n"...)
	query := p.Order.attribute()
	rest := strings.TrimPrefix(p.Path, "/")
	up := strings.Count(rest, "/")
	name, last := "Index", strings.Trim(rest, "/") == ""
	for !last {
		if name != "" {
			b = append(b, "<li>"...)
			b = p.appendCrumb(b, name, up, query)
			b = append(b, "</li>\n"...)
		}
		// An empty segment, as in "//", has no name but is a level.
		name, rest, _ = strings.Cut(rest, "/")
		up--
		last = name != "" && strings.Trim(rest, "/") == ""
	}
	b = append(b, `<li aria-current="page"><h1><bdi>`...)
	b = appendName(b, name)
	return append(b, "</bdi></h1></li>\n</ol>\n</nav>\n"...)
}

func (p *Page) appendCrumb(b []byte, name string, up int, query string) []byte {
	if p.Root {
		b = append(b, "<span><bdi>"...)
		b = appendName(b, name)
		return append(b, "</bdi></span>"...)
	}
	b = append(b, `<a href="`...)
	for range up {
		b = append(b, "../"...)
	}
	b = append(b, query...)
	b = append(b, `"><bdi>`...)
	b = appendName(b, name)
	return append(b, "</bdi></a>"...)
}

// appendHeading appends the head of a column, which sorts by it; that of the
// current one reverses the order.
func (p *Page) appendHeading(b []byte, c Column, title string) []byte {
	// People usually look for the newest and the largest.
	next := Order{By: c, Desc: c != Name}
	b = append(b, `<th scope="col"`...)
	if p.Order.By == c {
		next.Desc = !p.Order.Desc
		if p.Order.Desc {
			b = append(b, ` aria-sort="descending"`...)
		} else {
			b = append(b, ` aria-sort="ascending"`...)
		}
	}
	b = append(b, `><a href="./`...)
	b = append(b, next.attribute()...)
	b = append(b, `">`...)
	b = append(b, title...)
	return append(b, "</a></th>"...)
}

func appendRow(b []byte, e *Entry, query string) []byte {
	if e.Dir {
		b = append(b, `<tr><th scope="row" class="d"><a href="`...)
		b = appendURL(b, e)
		b = append(b, query...)
	} else {
		b = append(b, `<tr><th scope="row"><a href="`...)
		b = appendURL(b, e)
	}
	b = append(b, `"><svg aria-hidden="true"><use href="#`...)
	b = append(b, kindOf(e)...)
	b = append(b, `"/></svg><bdi>`...)
	b = appendName(b, e.Name)
	b = append(b, "</bdi>"...)
	if e.Link {
		b = append(b, `<svg class="l" role="img" aria-label="link">`+
			`<title>Symbolic link</title><use href="#l"/></svg>`...)
	}
	b = append(b, "</a></th>"...)
	if e.Dir || e.Size < 0 {
		b = append(b, "<td></td>"...)
	} else {
		b = append(b, `<td title="`...)
		b = appendBytes(b, e.Size)
		b = append(b, `">`...)
		b = appendSize(b, e.Size)
		b = append(b, "</td>"...)
	}
	if !dated(e) {
		return append(b, "<td></td></tr>\n"...)
	}
	b = append(b, `<td><time datetime="`...)
	at := len(b)
	b = appendTime(b, e)
	b = append(b, `">`...)
	b = append(b, b[at:at+len("2006-01-02")]...)
	b = append(b, ' ')
	b = append(b, b[at+len("2006-01-02T"):at+len("2006-01-02T15:04")]...)
	return append(b, "</time></td></tr>\n"...)
}

// appendTop appends the totals and the field that filters names, which only the
// script shows, since it would do nothing without it.
func (p *Page) appendTop(b []byte, list []*Entry) []byte {
	var folders, files, size int64
	for _, e := range list {
		if e.Dir {
			folders++
			continue
		}
		files++
		if 0 < e.Size && e.Size <= math.MaxInt64-size {
			size += e.Size
		} else if e.Size > 0 {
			size = math.MaxInt64 // sparse files may add up to more than there is
		}
	}
	b = append(b, "<div class=\"top\">\n<p>"...)
	b = appendCount(b, folders, "folder")
	b = append(b, ", "...)
	b = appendCount(b, files, "file")
	if files > 0 {
		b = append(b, `, <span title="`...)
		b = appendBytes(b, size)
		b = append(b, `">`...)
		b = appendSize(b, size)
		b = append(b, "</span>"...)
	}
	b = append(b, "</p>\n"...)
	if p.Truncated {
		b = append(b, "<p>The folder has more entries than are shown here.</p>\n"...)
	}
	return append(b, `<output></output>
<input hidden="hidden" type="search" placeholder="Filter" aria-label="Filter by name" autocomplete="off" spellcheck="false"/>
</div>
`...)
}

func (p *Page) appendFooter(b []byte) []byte {
	b = append(b, "<footer>\n"+`<p><a href="./`...)
	json := "?format=json"
	if query := p.Order.attribute(); query != "" {
		json = query + "&amp;format=json"
	}
	b = append(b, json...)
	return append(b, "\">JSON</a></p>\n</footer>\n"...)
}

func appendCount(b []byte, n int64, what string) []byte {
	b = appendGrouped(b, n)
	b = append(b, ' ')
	b = append(b, what...)
	if n != 1 {
		b = append(b, 's')
	}
	return b
}
