package demo

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"
)

//go:embed page.html page.css page.js
var pageFiles embed.FS

// page is the start page. It is immutable after init.
type page struct {
	html   string // with style and script
	policy string
}

func (p *page) init() error {
	css, err := pageFiles.ReadFile("page.css")
	if err != nil {
		return err
	}
	js, err := pageFiles.ReadFile("page.js")
	if err != nil {
		return err
	}
	page, err := pageFiles.ReadFile("page.html")
	if err != nil {
		return err
	}
	// Not by html/template: package admin says why.
	p.html = strings.NewReplacer("{{css}}", string(css), "{{js}}", string(js),
		"{{limit}}", strconv.Itoa(uploadLimit>>20)).Replace(string(page))
	// The page contacts this server only, and runs only its own script.
	p.policy = "default-src 'none'; style-src " + hash(css) + "; script-src " + hash(js) +
		"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return nil
}

// hash returns the source expression of a Content-Security-Policy for the
// content of an element.
func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// start shows the commands, with new tokens.
func (d *Demo) start(w http.ResponseWriter, r *http.Request) {
	jwt, err := d.JWT()
	if err != nil {
		http.Error(w, "no token", http.StatusInternalServerError)
		return
	}
	var list strings.Builder
	for _, c := range Commands(d.options.At.orOf(r), Tokens{d.Bearer(), jwt}) {
		c.appendTo(&list)
	}
	body := strings.Replace(d.page.html, "{{commands}}", list.String(), 1)
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	// It contains tokens: it is neither cached nor compressed, since its length
	// would leak them.
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("Content-Security-Policy", d.page.policy)
	io.WriteString(w, body)
}

// appendTo appends the command as an item of the page's list. The host in it is the
// client's.
func (c *Command) appendTo(b *strings.Builder) {
	esc := html.EscapeString
	fmt.Fprintf(b, "\n<li class=\"card\">\n<p class=\"row\"><span class=\"status s%d\">%d</span>\n<span "+
		"class=\"shows\">%s</span></p>\n",
		c.Status/100, c.Status, esc(c.Shows))
	fmt.Fprintf(b, "<pre class=\"curl\" tabindex=\"0\"><code>%s</code></pre>\n", esc(c.Curl))
	b.WriteString("<p class=\"row buttons\">\n<button type=\"button\" class=\"copy\" hidden>Copy</button>")
	if t := c.Try; t != nil {
		method, path := esc(t.Method), esc(t.Path)
		fmt.Fprintf(b, "\n<button type=\"button\" class=\"try\" hidden data-method=\"%s\" data-path=\"%s\" "+
			"data-auth=\"%s\" data-body=\"%s\">Try %s %s</button>",
			method, path, esc(t.Auth), esc(t.Body), method, path)
	}
	b.WriteString("\n</p>\n<pre class=\"answer\" role=\"status\" hidden></pre>\n</li>")
}
