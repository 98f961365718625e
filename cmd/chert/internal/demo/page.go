package demo

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
)

//go:embed page.html page.css page.js
var pageFiles embed.FS

// page is the start page. It is immutable after init.
type page struct {
	html   *template.Template
	css    template.CSS
	js     template.JS
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
	if p.html, err = template.ParseFS(pageFiles, "page.html"); err != nil {
		return err
	}
	p.css, p.js = template.CSS(css), template.JS(js)
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
	at := d.options.At.orOf(r)
	var b bytes.Buffer
	err = d.page.html.Execute(&b, map[string]any{
		"CSS": d.page.css, "JS": d.page.js, "Commands": Commands(at, Tokens{d.Bearer(), jwt}),
		"Limit": uploadLimit >> 20,
	})
	if err != nil {
		d.options.Logger.Error("no start page", "error", err)
		http.Error(w, "no page", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	// It contains tokens: it is neither cached nor compressed, since its length
	// would leak them.
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("Content-Security-Policy", d.page.policy)
	w.Write(b.Bytes())
}
