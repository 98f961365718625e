package browser

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/listing"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// shown are the visible names, in order.
const shown = `Array.from(document.querySelectorAll("tbody bdi")).filter(b => b.closest("tr").checkVisibility()).map(b => b.textContent)`

// The filter hides rows that do not have all words that are typed.
func TestFilter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makeNice(t, dir)
	tab := openTab(t, serve(t, dir))
	for _, width := range []int64{1100, 375} { // rows are a table on the first, and not on the second
		tab.look(t, width, 800, "light")
		tab.visit(t, tab.origin+"/projects/field%20survey%202026/")
		all := eval[[]string](t, tab, shown)
		for _, c := range []struct {
			typed string
			want  int
			count string
			why   string
		}{
			{"CHALK", 2, "2 shown", "in any case"},
			{"face ridge north", 1, "1 shown", "in any order"},
			{"סקר", 1, "1 shown", "in any script"},
			{"no such name", 0, "0 shown", ""},
			{"   ", len(all), "", "no words"},
			{"", len(all), "", "everything is there again"},
		} {
			eval[int](t, tab, `{const q = document.querySelector("input"); q.value = `+quoted(c.typed)+`; q.dispatchEvent(new Event("input")); 1}`)
			names := eval[[]string](t, tab, shown)
			count := eval[string](t, tab, `document.querySelector("output").textContent`)
			if len(names) != c.want || count != c.count {
				t.Errorf("%q (%s) leaves %q, and %q is said", c.typed, c.why, names, count)
			}
		}
		tab.do(t, chromedp.SendKeys(chromedp.CSS("input"), "chalk"))
		if names := eval[[]string](t, tab, shown); len(names) != 2 {
			t.Errorf("typing leaves %q", names)
		}
		tab.picture(t, "filter-"+strconv.Itoa(int(width)))
		if got := eval[bool](t, tab, `document.querySelector("tbody a[href^='../']").checkVisibility()`); !got {
			t.Error("the way up is filtered away")
		}
		tab.do(t, chromedp.KeyEvent("\x1b"))
		if got := eval[[]string](t, tab, shown); len(got) != len(all) {
			t.Errorf("after Escape there are %q", got)
		}
	}
	tab.visit(t, tab.origin+"/empty/")
	if eval[bool](t, tab, `document.querySelector("input").checkVisibility()`) {
		t.Error("an empty folder has a filter")
	}
}

// Times are in the reader's time zone, and the page of a host names it.
func TestPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 22, 5, 0, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, "f"), at, at); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	tab := openTab(t, serve(t, dir))
	for zone, want := range map[string]string{"UTC": "2026-03-01 22:05", "Asia/Tokyo": "2026-03-02 07:05", "America/St_Johns": "2026-03-01 18:35"} {
		if _, err := chromedp.Call(tab.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone}); err != nil {
			t.Fatal(err)
		}
		tab.visit(t, tab.origin+"/")
		row := `document.querySelector("a[href='./f']").closest("tr").querySelector("time")`
		if got := eval[string](t, tab, row+".textContent"); got != want {
			t.Errorf("in %s it is %s, want %s", zone, got, want)
		}
		if got := eval[string](t, tab, row+".title"); got != "2026-03-01T22:05:00Z" {
			t.Errorf("in %s its title is %s", zone, got)
		}
	}
	if got := eval[string](t, tab, `document.querySelector("thead th:last-child").textContent`); got != "Modified" {
		t.Errorf("the column is %q", got)
	}
	host := strings.TrimPrefix(tab.origin, "http://")
	for _, path := range []string{"/", "/inner/"} {
		tab.visit(t, tab.origin+path)
		if got := eval[string](t, tab, `document.querySelector("nav bdi").textContent`); got != host {
			t.Errorf("%s begins at %q, want %s", path, got, host)
		}
	}
}

// Without scripts the page has all its content, and no field that does nothing.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makeNice(t, dir)
	tab := openTab(t, serve(t, dir))
	if _, err := chromedp.Call(tab.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	tab.look(t, 1100, 800, "light")
	tab.visit(t, tab.origin+"/projects/field%20survey%202026/")
	if got := eval[[]string](t, tab, shown); len(got) < 10 {
		t.Errorf("shows %q", got)
	}
	if eval[bool](t, tab, `document.querySelector("input").checkVisibility()`) {
		t.Error("there is a filter that does nothing")
	}
	for selector, want := range map[string]string{"thead th:last-child": "Modified, UTC", "nav bdi": "Index", ".top p": "3 folders, 14 files, 3.4 GiB"} {
		if got := eval[string](t, tab, "document.querySelector("+quoted(selector)+").textContent"); got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	tab.picture(t, "no-script")
}

// A visitor of a missing page sees a page, and can continue from there.
func TestErrorPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makeNice(t, dir)
	origin := serve(t, dir)
	tab := startTab(t, origin) // errors are what the test checks
	background := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		for name, width := range map[string]int64{"": 1100, "-phone": 375} {
			tab.look(t, width, 800, scheme, chromedp.EmulateMobile)
			response, err := chromedp.Run(tab.ctx, chromedp.NavigateResponse(origin+"/projects/"+strings.Repeat("nothing", 30)))
			if err != nil {
				t.Fatal(err)
			}
			if response.Status != 404 || response.Headers["Content-Security-Policy"] != listing.ContentSecurityPolicy {
				t.Errorf("%d %v", response.Status, response.Headers)
			}
			if got := eval[int64](t, tab, pageWidth); got != width {
				t.Errorf("the page is %d wide in a window of %d", got, width)
			}
			tab.picture(t, "404"+name+"-"+scheme)
		}
		background[scheme] = eval[string](t, tab, "getComputedStyle(document.body).backgroundColor")
		if got := eval[string](t, tab, "document.title"); got != "404 Not Found" {
			t.Errorf("the title is %q", got)
		}
		tab.click(t, "a")
		if got := eval[string](t, tab, "location.href"); got != origin+"/projects/" {
			t.Errorf("it leads to %s", got)
		}
	}
	// From the style sheet, which a policy that forbids it would have blocked.
	if background["light"] == background["dark"] || background["dark"] == "rgba(0, 0, 0, 0)" {
		t.Errorf("the pages are %v", background)
	}
	tab.visit(t, origin+"/projects/nothing/")
	tab.click(t, "a")
	if got := eval[string](t, tab, "location.href"); got != origin+"/projects/" {
		t.Errorf("a folder that is not there leads to %s", got)
	}
	for _, fault := range tab.found() {
		if !strings.Contains(fault, "404") {
			t.Error(fault)
		}
	}
}
