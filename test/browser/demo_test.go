package browser

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
)

// buildDemo builds chert, which this module cannot import.
func buildDemo(t *testing.T) (bin string) {
	t.Helper()
	bin = filepath.Join(t.TempDir(), "chert")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "./cmd/chert")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// startDemo runs "chert demo" and returns its address.
func startDemo(t *testing.T) (origin string) {
	t.Helper()
	origin, _ = runDemo(t, buildDemo(t), "127.0.0.1:0")
	return origin
}

// runDemo runs "chert demo" on an address. stop ends it as a service manager would.
func runDemo(t *testing.T, bin, address string) (origin string, stop func()) {
	t.Helper()
	cmd := exec.Command(bin, "demo", "--listen", address, "--log", "off")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := regexp.MustCompile(`http://[^ \n]+`).FindString(line)
	return strings.TrimSuffix(url, "/"), func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	}
}

// The page works under its policy, and each command that can be tried has the status that it shows.
func TestDemo(t *testing.T) {
	t.Parallel()
	origin := startDemo(t)
	tab := startTab(t, origin)
	tab.visit(t, origin+"/")
	if faults := tab.found(); len(faults) > 0 {
		t.Fatal(faults)
	}

	const tryAll = `(async () => {
		const all = [];
		for (const li of document.querySelectorAll(".lines li")) {
			const b = li.querySelector(".try"), out = li.querySelector(".answer");
			if (!b) continue;
			b.click();
			while (out.hidden || b.disabled) await new Promise(r => setTimeout(r, 5));
			all.push(li.querySelector(".status").textContent + " " + b.dataset.path + " " + out.textContent);
		}
		return all;
	})()`
	tried := eval[[]string](t, tab, tryAll)
	for _, text := range tried {
		status, rest, _ := strings.Cut(text, " ")
		path, got, _ := strings.Cut(rest, " ")
		if path == "/limited" {
			status = "200" // the first time
		}
		if !strings.HasPrefix(got, status+" ") {
			t.Errorf("%s: %q, want %s", path, got, status)
		}
	}
	if len(tried) < 10 {
		t.Errorf("%d lines to try", len(tried))
	}

	clock := eval[string](t, tab, `(async () => {
		const b = document.getElementById("clock-button"), out = document.getElementById("clock");
		b.click();
		while (!out.textContent.startsWith("2")) await new Promise(r => setTimeout(r, 5));
		b.click();
		return out.textContent;
	})()`)
	if clock != "stopped" {
		t.Errorf("the clock says %q", clock)
	}

	// The response arrives while the browser still sends, and must not be lost.
	upload := `Promise.all([1, 20].map(mib => fetch("/upload", { method: "POST", body: new Blob([new Uint8Array(mib << 20)]) })
		.then(r => r.status, e => e.message)))`
	if got := eval[[]any](t, tab, upload); !slices.Equal(got, []any{200.0, 413.0}) {
		t.Errorf("uploads of 1 and 20 MiB: %v", got)
	}

	// The statuses from 400 are expected; violations of the policy and requests elsewhere are not.
	faults := slices.DeleteFunc(tab.found(), func(s string) bool {
		return regexp.MustCompile(`^[45]\d\d for |^network: error: Failed to load resource|^loading failed: net::ERR_ABORTED`).MatchString(s)
	})
	for _, f := range faults {
		t.Error(f)
	}
}

// Nothing is wider than the window, and buttons are large enough for fingers.
func TestDemoLook(t *testing.T) {
	t.Parallel()
	origin := startDemo(t)
	tab := openTab(t, origin)
	for _, tt := range []struct {
		name          string
		width, height int64
		scheme        string
		options       []chromedp.EmulateViewportOption
	}{
		{"demo-light", 1100, 900, "light", nil},
		{"demo-dark", 1100, 900, "dark", nil},
		{"demo-phone", 360, 780, "light", []chromedp.EmulateViewportOption{chromedp.EmulateMobile}},
		{"demo-phone-dark", 360, 780, "dark", []chromedp.EmulateViewportOption{chromedp.EmulateMobile}},
	} {
		tab.look(t, tt.width, tt.height, tt.scheme, tt.options...)
		tab.visit(t, origin+"/")
		if wide := eval[int](t, tab, `document.documentElement.scrollWidth`); int64(wide) > tt.width {
			t.Errorf("%s: the page is %d wide", tt.name, wide)
		}
		low := eval[int](t, tab, `Math.min(...Array.from(document.querySelectorAll("button")).filter(b => !b.hidden).map(b => b.offsetHeight))`)
		if low < 44 {
			t.Errorf("%s: a button is %d high", tt.name, low)
		}
		if n := eval[int](t, tab, `document.querySelectorAll(".try:not([hidden])").length`); n == 0 {
			t.Errorf("%s: nothing to try", tt.name)
		}
		tab.picture(t, tt.name)
	}
}
