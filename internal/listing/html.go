package listing

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"math"
	"strings"
)

//go:embed style.css
var styleFile string

//go:embed icons.svg
var iconsFile string

// A checkout may have changed the ends of lines, and a browser changes them
// back before it looks at the hash.
var (
	style = strings.ReplaceAll(styleFile, "\r", "")
	icons = strings.ReplaceAll(iconsFile, "\r", "")
)

// ContentSecurityPolicy is the value of the field that should go with the page:
// nothing runs, nothing is loaded, and no other origin has it in a frame. What a
// name smuggles in, should one ever get through, has no effect. Immutable.
var ContentSecurityPolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; " +
		"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
}()

// AppendHTML appends the listing as an HTML page in UTF-8.
func (p *Page) AppendHTML(b []byte) []byte {
	list := p.sorted()
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
	b = p.appendFooter(b, list)
	return append(b, "</body>\n</html>\n"...)
}

// appendCrumbs appends the path, each folder with a link that goes up to it.
// The links are relative, for a prefix may have been taken from p.Path.
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
// present one turns the order around.
func (p *Page) appendHeading(b []byte, c Column, title string) []byte {
	// The newest and the largest are what people look for.
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
		b = append(b, `<svg class="l" role="img" aria-label="link"><title>Symbolic link</title><use href="#l"/></svg>`...)
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

func (p *Page) appendFooter(b []byte, list []*Entry) []byte {
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
	b = append(b, "<footer>\n<p>"...)
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
	b = append(b, `<p><a href="./`...)
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
