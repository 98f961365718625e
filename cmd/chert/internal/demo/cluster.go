package demo

import (
	"embed"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
)

//go:embed cluster.html cluster.js
var clusterFiles embed.FS

// serveCluster returns the page that shows the feeds of all instances. Their addresses are as in
// Options.Instances.
func serveCluster(instances []string) (http.HandlerFunc, error) {
	css, err := pageFiles.ReadFile("page.css")
	if err != nil {
		return nil, err
	}
	js, err := clusterFiles.ReadFile("cluster.js")
	if err != nil {
		return nil, err
	}
	page, err := clusterFiles.ReadFile("cluster.html")
	if err != nil {
		return nil, err
	}
	var cards strings.Builder
	for i, at := range instances {
		fmt.Fprintf(&cards, `
<section class="card" data-at="%s" aria-labelledby="at%d">
<h2 id="at%d">%s</h2>
<form class="row"><label for="text%d">Publish</label> <input type="text" id="text%d" maxlength="120" autocomplete="off">
<button>Send</button> <span role="status">not connected</span></form>
<pre class="answer" role="log"></pre>
</section>`, html.EscapeString(at), i, i, html.EscapeString(at), i, i)
	}
	body := strings.NewReplacer("{{css}}", string(css), "{{js}}", string(js), "{{cards}}", cards.String()).
		Replace(string(page))
	policy := "default-src 'none'; style-src " + hash(css) + "; script-src " + hash(js) + "; connect-src " +
		strings.Join(instances, " ") + "; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		io.WriteString(w, body)
	}, nil
}

// shared is middleware of what pages of other instances use.
func shared(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*") // it has no cookies, and everybody may publish
		h.ServeHTTP(w, r)
	})
}
