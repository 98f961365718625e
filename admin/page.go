package admin

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"strings"
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
)

// The pages are filled in without html/template: it calls methods by name, so the
// linker would keep the exported methods of every type in the program. That is a
// quarter of the command's size; a test of cmd/chert has an eye on it.

// page sends the live page, whose content comes by the event stream.
func (h *handler) page(w http.ResponseWriter, _ *http.Request) {
	metrics := ""
	if h.opts.Metrics != nil {
		metrics = ` <a href="metrics">Metrics</a>`
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	strings.NewReplacer("{{title}}", html.EscapeString(h.opts.Title), "{{metrics}}", metrics,
		"{{about}}", html.EscapeString(h.about())).WriteString(w, pageFile)
}

// about says which process this is.
func (h *handler) about() string {
	var parts []string
	if h.opts.Version != "" {
		parts = append(parts, h.opts.Version)
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		parts = append(parts, "on "+name)
	}
	if all := h.current().Addrs; len(all) > maxAddrs {
		parts = append(parts, fmt.Sprintf("at %s and %d more", strings.Join(all[:maxAddrs], ", "), len(all)-maxAddrs))
	} else if len(all) > 0 {
		parts = append(parts, "at "+strings.Join(all, ", "))
	}
	return strings.Join(parts, " ")
}

const maxAddrs = 8 // on the page

func asset(kind, content string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, content)
	}
}
