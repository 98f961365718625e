package admin

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"net/http"
)

// policy lets the page load its own style and script and read the event stream, and
// nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var (
	//go:embed page.html
	pageFile string
	//go:embed style.css
	style string
	//go:embed script.js
	script string

	page = template.Must(template.New("page").Parse(pageFile))
)

// page sends the live page, whose content comes by the event stream.
func (h *handler) page(w http.ResponseWriter, _ *http.Request) {
	var b bytes.Buffer
	if err := page.Execute(&b, map[string]any{"Title": h.opts.Title, "Metrics": h.opts.Metrics != nil}); err != nil {
		plain(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(b.Bytes())
}

func asset(kind, content string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, content)
	}
}
