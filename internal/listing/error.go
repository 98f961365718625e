package listing

import "strconv"

// An ErrorPage explains in a browser why there is no content. It has the design
// of a listing.
type ErrorPage struct {
	Status int
	Title  string // of the status: "Not Found"
	Text   string // a sentence or two
	// Up is a relative URL of the folder above; "" leaves the link out.
	Up string
}

// AppendHTML appends the page in UTF-8. It needs no script.
func (p *ErrorPage) AppendHTML(b []byte) []byte {
	b = append(b, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<title>`...)
	b = strconv.AppendInt(b, int64(p.Status), 10)
	b = appendText(append(b, ' '), p.Title, "", "")
	b = append(b, `</title>
<link rel="icon" href="data:,"/>
<style>`...)
	b = append(b, errorStyle...)
	b = append(b, "</style>\n</head>\n<body>\n<main>\n<h1><b>"...)
	b = strconv.AppendInt(b, int64(p.Status), 10)
	b = appendText(append(b, "</b> "...), p.Title, "", "")
	b = appendText(append(b, "</h1>\n<p>"...), p.Text, "", "")
	b = append(b, "</p>\n"...)
	if p.Up != "" {
		b = appendText(append(b, `<a href="`...), p.Up, "", "")
		b = append(b, "\">Go to the folder</a>\n"...)
	}
	return append(b, "</main>\n</body>\n</html>\n"...)
}
