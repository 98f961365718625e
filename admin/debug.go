package admin

import (
	_ "embed"
	"encoding/json"
	"html"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/interval"
	"github.com/chert-http/chert/stats"
)

// How many rows the lists of requests and connections have: by default, and at most.
const (
	rows    = 200
	maxRows = 10_000
)

//go:embed debug.html
var debugFile string

// stats sends the counters.
func (h *handler) stats(w http.ResponseWriter, _ *http.Request) {
	sendJSON(w, interval.Take(h.source))
}

// requests lists the requests in progress, the longest first.
func (h *handler) requests(w http.ResponseWriter, r *http.Request) {
	most := limit(r)
	now := time.Now()
	all := h.source.RunningRequests(most)
	slices.SortStableFunc(all, func(x, y stats.Request) int { return x.Began.Compare(y.Began) })
	all = all[:min(len(all), most)]
	for i := range all {
		all[i].Target = interval.WithoutQuery(all[i].Target)
	}
	if wantsJSON(r) {
		sendJSON(w, requestList{now, orEmpty(all)})
		return
	}
	t := table{Title: "Requests in progress", Root: "../",
		Empty:   "No request is in progress, beside those that a loop runs at this moment.",
		Columns: []string{"Running for", "Stage", "Method", "Target", "Route", "Where", "Loop", "Protocol", "Peer"}}
	for _, q := range all {
		t.Rows = append(t.Rows, []string{age(now, q.Began), q.Stage, interval.Printable(q.Method),
			interval.Printable(q.Target), interval.Printable(q.Route), q.Way.String(), loop(q.Loop), q.Protocol,
			q.Peer})
	}
	t.send(w, most)
}

// connections lists the open connections, those that changed longest ago first.
func (h *handler) connections(w http.ResponseWriter, r *http.Request) {
	most := limit(r)
	now := time.Now()
	all := h.source.OpenConnections(most)
	slices.SortStableFunc(all, func(x, y stats.Connection) int { return x.Since.Compare(y.Since) })
	all = all[:min(len(all), most)]
	if wantsJSON(r) {
		sendJSON(w, connectionList{now, orEmpty(all)})
		return
	}
	t := table{Title: "Open connections", Root: "../", Empty: "No connection is open.",
		Columns: []string{"State", "For", "Protocol", "TLS", "Unsent", "Loop", "Peer", "Local"}}
	for _, c := range all {
		t.Rows = append(t.Rows, []string{c.State, age(now, c.Since), c.Protocol, c.TLS,
			interval.Bytes(float64(c.Unsent)), loop(c.Loop), c.Peer, c.Local})
	}
	t.send(w, most)
}

// requestList and connectionList are the lists as JSON.
type requestList struct {
	At       time.Time
	Requests []stats.Request
}

type connectionList struct {
	At          time.Time
	Connections []stats.Connection
}

// orEmpty makes a list that is not null in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func age(now, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return interval.Short(max(now.Sub(at), 0))
}

func loop(i int) string {
	if i < 0 {
		return ""
	}
	return strconv.Itoa(i)
}

// limit returns the value of ?max.
func limit(r *http.Request) int {
	n, err := strconv.Atoi(r.FormValue("max"))
	if err != nil || n < 1 {
		return rows
	}
	return min(n, maxRows)
}

// wantsJSON reports which form a client wants: that of ?format, or else the first of
// both that Accept names. curl accepts anything and gets JSON, browsers name HTML.
func wantsJSON(r *http.Request) bool {
	if f := r.FormValue("format"); f != "" {
		return f != "html"
	}
	for part := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		switch t, _, _ := mime.ParseMediaType(part); t {
		case "text/html", "application/xhtml+xml":
			return false
		case "application/json":
			return true
		}
	}
	return true
}

func sendJSON(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		plain(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(b, '\n'))
}

// table is a list as a page.
type table struct {
	Title, Empty string
	Root         string // the way to the live page
	Columns      []string
	Rows         [][]string
	Links        bool // the first column has links, which are paths
	More         bool // there may be more
}

func (t *table) send(w http.ResponseWriter, most int) {
	t.More = len(t.Rows) == most
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	strings.NewReplacer("{{title}}", html.EscapeString(t.Title), "{{root}}", t.Root, "{{list}}",
		t.list()).WriteString(w, debugFile)
}

// list returns the rows as HTML. Every cell may have come from a client.
func (t *table) list() string {
	if len(t.Rows) == 0 {
		return `<p class="card">` + html.EscapeString(t.Empty) + "</p>\n"
	}
	var b strings.Builder
	b.WriteString(`<div class="card scroll" tabindex="0" role="region" aria-labelledby="title">` +
		"\n<table>\n<thead><tr>")
	for _, column := range t.Columns {
		b.WriteString(`<th scope="col">` + html.EscapeString(column) + "</th>")
	}
	b.WriteString("</tr></thead>\n<tbody>\n")
	for _, row := range t.Rows {
		b.WriteString("<tr>")
		for i, cell := range row {
			text := html.EscapeString(cell)
			switch {
			case t.Links && i == 0:
				b.WriteString(`<td><a href="` + text + `">` + text + "</a></td>")
			case len(cell) > 40:
				b.WriteString(`<td class="long">` + text + "</td>")
			default:
				b.WriteString("<td>" + text + "</td>")
			}
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody>\n</table>\n</div>\n")
	if t.More {
		b.WriteString(`<p class="soft">There may be more: ?max=N shows N.</p>` + "\n")
	}
	return b.String()
}
