package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a test may wait for the browser; it is long because
// machines are slow.
const patience = 2 * time.Minute

// A tab is one page of a browser of its own, and the faults in it.
type tab struct {
	ctx    context.Context
	origin string // the only one it may send requests to

	mu     sync.Mutex
	faults []string
}

// openTab starts Chromium. It ends with the test, which then fails if the page
// has logged anything, or if a request failed or went to another origin.
func openTab(t *testing.T, origin string, more ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	tab := startTab(t, origin, more...)
	t.Cleanup(func() {
		// Events come in order, so all earlier ones have arrived with this
		// reply.
		eval[int](t, tab, "1")
		for _, fault := range tab.found() {
			t.Error(fault)
		}
	})
	return tab
}

// startTab is openTab for tests that check the faults themselves.
func startTab(t *testing.T, origin string, more ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatal("chromium is not installed; the Debian package is chromium")
		}
		t.Skip("chromium is not installed; the Debian package is chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.Flag("headless", "new"),
		chromedp.NoSandbox, // root has none, and the pages are ours
		chromedp.DisableGPU,
		chromedp.Flag("lang", "en"),
		chromedp.WSURLReadTimeout(patience),
	)
	alloc, stop := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
	t.Cleanup(stop)
	ctx, _ := chromedp.NewContext(alloc) // closed by Cancel
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("closing chromium: %v", err)
		}
	})
	tab := &tab{ctx: ctx, origin: origin}
	if err := chromedp.Listen(ctx, tab.hear); err != nil { // starts the browser
		t.Fatal(err)
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	tab.ctx = limited
	return tab
}

// hear is called for each event and must not block.
func (tab *tab) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		tab.fault("console.%s was called", e.Type)
	case *runtime.EventExceptionThrown:
		tab.fault("exception: %s", e.ExceptionDetails.Text)
	case *log.EventEntryAdded: // violations of the content security policy are among these
		tab.fault("%s: %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *network.EventLoadingFailed:
		tab.fault("loading failed: %s %s", e.ErrorText, e.BlockedReason)
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, tab.origin+"/") && !strings.HasPrefix(url, "data:") {
			tab.fault("a request went to %s", url)
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			tab.fault("%d for %s", e.Response.Status, e.Response.URL)
		}
	}
}

func (tab *tab) fault(format string, args ...any) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.faults = append(tab.faults, fmt.Sprintf(format, args...))
}

func (tab *tab) found() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return tab.faults
}

func (tab *tab) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(tab.ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// visit waits until the page has loaded.
func (tab *tab) visit(t *testing.T, url string) {
	t.Helper()
	tab.do(t, chromedp.Navigate(url))
}

// click clicks the first match of the selector and waits until the page that it
// leads to has loaded.
func (tab *tab) click(t *testing.T, selector string) {
	t.Helper()
	if _, err := chromedp.RunResponse(tab.ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
		t.Fatalf("clicking %s: %v", selector, err)
	}
}

// eval returns the value of an expression, which may be a promise.
func eval[T any](t *testing.T, tab *tab, expression string) T {
	t.Helper()
	value, err := chromedp.Run(tab.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// quoted quotes a string for JavaScript.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // no string makes it fail
	}
	return string(b)
}

// look sets the size of the window and the user's preference: light or dark.
func (tab *tab) look(t *testing.T, width, height int64, scheme string, options ...chromedp.EmulateViewportOption) {
	t.Helper()
	tab.do(t, chromedp.EmulateViewport(width, height, options...))
	_, err := chromedp.Call(tab.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// picture saves a screenshot in CHERT_SCREENSHOTS, if that is set.
func (tab *tab) picture(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("CHERT_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(tab.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}
