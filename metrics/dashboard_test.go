package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboardFile is for Grafana.
const dashboardFile = "../docs/observability/grafana.json"

// A panelQuery is one query of the dashboard.
type panelQuery struct {
	panel, text string
	source      string
}

// expr returns the query with Grafana's variables replaced.
func (q panelQuery) expr(t *testing.T) string {
	t.Helper()
	s := strings.NewReplacer("$__rate_interval", "1m", "$job", "chert", "$instance", ".*").Replace(q.text)
	if strings.Contains(s, "$") {
		t.Errorf("panel %q: an unknown variable in %s", q.panel, q.text)
	}
	return s
}

// dashboard returns all queries of the dashboard.
func dashboard(t *testing.T) (all []panelQuery) {
	t.Helper()
	b, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	type panel struct {
		ID          int
		Title, Type string
		Datasource  struct{ Type, UID string }
		Targets     []struct{ Expr, RefID string }
	}
	var d struct {
		UID, Title    string
		SchemaVersion int
		Panels        []panel
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	var ids []int
	for _, p := range d.Panels {
		if p.Title == "" || slices.Contains(ids, p.ID) {
			t.Errorf("panel %d %q has no title, or its id is taken", p.ID, p.Title)
		}
		ids = append(ids, p.ID)
		for _, q := range p.Targets {
			all = append(all, panelQuery{p.Title, q.Expr, p.Datasource.UID})
		}
	}
	if d.UID == "" || d.Title == "" || d.SchemaVersion == 0 || len(all) < 20 {
		t.Errorf("no dashboard: %q, %q, %d queries", d.UID, d.Title, len(all))
	}
	return all
}

var (
	quoted    = regexp.MustCompile(`"[^"]*"`)
	word      = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	grouping  = regexp.MustCompile(`\b(?:by|ignoring)\s*\(([^()]*)\)`)
	matchers  = regexp.MustCompile(`\{([^{}]*)\}`)
	functions = strings.Fields("sum max min avg rate histogram_quantile by or ignoring group_left topk vector")
)

// The queries of the dashboard name metrics and labels that exist.
func TestDashboard(t *testing.T) {
	t.Parallel()
	labels := make(map[string][]string) // by metric
	for line := range strings.Lines(scrape(t, Handler(busyServer(), nil), "text/plain")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name := word.FindString(line)
		own := []string{"job", "instance"}
		if _, rest, ok := strings.Cut(line[:strings.LastIndexByte(line, ' ')], "{"); ok {
			own = append(own, word.FindAllString(quoted.ReplaceAllString(rest, ""), -1)...)
		}
		labels[name] = own
	}
	for _, q := range dashboard(t) {
		if q.source != "${datasource}" {
			t.Errorf("panel %q: source %q", q.panel, q.source)
		}
		expr := quoted.ReplaceAllString(q.expr(t), `""`)
		var named []string
		for _, m := range append(grouping.FindAllStringSubmatch(expr, -1), matchers.FindAllStringSubmatch(expr, -1)...) {
			named = append(named, word.FindAllString(m[1], -1)...)
		}
		expr = matchers.ReplaceAllString(grouping.ReplaceAllString(expr, ""), "")
		expr = regexp.MustCompile(`\[[^\]]*\]`).ReplaceAllString(expr, "")
		var of []string
		for _, name := range word.FindAllString(expr, -1) {
			switch own, ok := labels[name]; {
			case ok:
				of = append(of, own...)
			case !slices.Contains(functions, name):
				t.Errorf("panel %q: no metric or function %s", q.panel, name)
			}
		}
		for _, l := range named {
			if !slices.Contains(of, l) {
				t.Errorf("panel %q: no metric of %s has the label %s", q.panel, q.text, l)
			}
		}
	}
}
