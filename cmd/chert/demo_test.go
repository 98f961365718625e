package main

import (
	"bufio"
	"flag"
	"html"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chert-http/chert/cmd/chert/internal/demo"
)

var update = flag.Bool("update", false, "write the golden files")

// needCurl skips the test without curl and a shell.
func needCurl(t *testing.T) {
	t.Helper()
	for name, pkg := range map[string]string{"sh": "dash", "curl": "curl"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
				t.Fatalf("%s is not installed; the Debian package is %s", name, pkg)
			}
			t.Skipf("%s is not installed; the Debian package is %s", name, pkg)
		}
	}
}

// startDemo launches "chert demo" and returns the lines that it prints.
func startDemo(t *testing.T, args ...string) (*proc, []demo.Command) {
	t.Helper()
	p := launch(t, append([]string{"demo"}, args...)...)
	p.urls = urlPattern.FindAllString(p.line(), -1)
	if len(p.urls) == 0 {
		t.Fatal("the first line names no address")
	}
	var text strings.Builder
	for range len(demo.Commands(demo.At{}, demo.Tokens{Bearer: "b"})) {
		for range 3 { // an empty one before each
			text.WriteString(p.line())
		}
	}
	return p, parseCommands(t, text.String())
}

var linePattern = regexp.MustCompile(`(?m)^  # (\d{3}): (.*)\n  (.*curl .*)$`)

func parseCommands(t *testing.T, text string) (lines []demo.Command) {
	t.Helper()
	for _, m := range linePattern.FindAllStringSubmatch(text, -1) {
		status, _ := strconv.Atoi(m[1])
		lines = append(lines, demo.Command{Status: status, Shows: m[2], Curl: m[3]})
	}
	if len(lines) == 0 {
		t.Fatalf("no lines in %q", text)
	}
	return lines
}

// pageCommands are those of the start page.
func pageCommands(t *testing.T, page string) (lines []demo.Command) {
	t.Helper()
	item := regexp.MustCompile(`(?s)class="status s\d">(\d+)<.*?class="shows">(.*?)</span>.*?<code>(.*?)</code>`)
	for _, m := range item.FindAllStringSubmatch(page, -1) {
		status, _ := strconv.Atoi(m[1])
		lines = append(lines, demo.Command{Status: status, Shows: html.UnescapeString(m[2]), Curl: html.UnescapeString(m[3])})
	}
	return lines
}

var statusPattern = regexp.MustCompile(`(?m)^HTTP/1\.1 (\d{3}) `)

// tell has the field that a response with the status must have.
var tell = map[int]string{
	http.StatusUnauthorized: "Www-Authenticate: Bearer", http.StatusMethodNotAllowed: "Allow: GET, HEAD, OPTIONS",
	http.StatusTooManyRequests: "Retry-After: ",
}

// runCommand runs a command in a shell and checks the last status against what it promises. before are other lines
// for the same shell.
func runCommand(t *testing.T, before string, l demo.Command) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", before+l.Curl)
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v", l.Curl, err)
	}
	all := statusPattern.FindAllStringSubmatchIndex(string(out), -1)
	if len(all) == 0 {
		t.Errorf("%s: no answer in %q", l.Curl, out)
		return
	}
	last := all[len(all)-1]
	if got := string(out[last[2]:last[3]]); got != strconv.Itoa(l.Status) {
		t.Errorf("%s: status %s, and it says that it shows %d: %s", l.Curl, got, l.Status, l.Shows)
	}
	if want := tell[l.Status]; !strings.Contains(string(out[last[0]:]), want) {
		t.Errorf("%s: no %q in %q", l.Curl, want, out)
	}
}

// Each list is tried at a server of its own: the token that comes back to an address after 12 seconds must not be for
// the last request of another list.
func TestDemoLines(t *testing.T) {
	t.Parallel()
	needCurl(t)
	type commandsOf = func(t *testing.T, p *proc, printed []demo.Command) (before string, lines []demo.Command, n int)
	for name, list := range map[string]commandsOf{
		"printed": func(t *testing.T, _ *proc, printed []demo.Command) (string, []demo.Command, int) {
			for _, status := range []int{200, 401, 404, 405, 413, 429} {
				if !slices.ContainsFunc(printed, func(l demo.Command) bool { return l.Status == status }) {
					t.Errorf("no line shows %d", status)
				}
			}
			return "", printed, len(printed)
		},
		"help": func(t *testing.T, p *proc, printed []demo.Command) (string, []demo.Command, int) {
			host := strings.TrimSuffix(strings.TrimPrefix(p.urls[0], "http://"), "/")
			_, help, _ := inProcess(t, "demo", "--listen", host, "--help")
			token := regexp.MustCompile(`(?m)^  (TOKEN=.*)$`).FindString(help)
			if token == "" {
				t.Error("the help does not say what TOKEN is")
			}
			return token + "\n", parseCommands(t, help), len(printed) - 1 // not that with the token of a start
		},
		"page": func(t *testing.T, p *proc, printed []demo.Command) (string, []demo.Command, int) {
			_, page := get(t, newClient(t, ""), p.urls[0])
			return "", pageCommands(t, page), len(printed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, printed := startDemo(t, "--listen", "127.0.0.1:0")
			before, lines, n := list(t, p, printed)
			if len(lines) != n {
				t.Errorf("%d lines, want %d", len(lines), n)
			}
			for _, l := range lines {
				runCommand(t, before, l)
			}
		})
	}
}

// For a unix socket the commands are different.
func TestDemoOnSocket(t *testing.T) {
	t.Parallel()
	needCurl(t)
	sock := filepath.Join(shortDir(t), "it's a socket")
	_, lines := startDemo(t, "--listen", "unix:"+sock, "--log", "json")
	for _, l := range lines[:6] {
		runCommand(t, "", l)
	}
}

func TestDemoHelp(t *testing.T) {
	t.Parallel()
	golden := filepath.Join("testdata", "demo_help.golden")
	_, help, _ := inProcess(t, "demo", "--help")
	if *update {
		write(t, golden, help)
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if help != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("the help is not %s any more; see what changed with go test -run TestDemoHelp -update:\n%s", golden, help)
	}
	for listen, want := range map[string]string{
		":81": "http://localhost:81/ping", "0.0.0.0:82": "http://localhost:82/ping", "[::]:83": "http://localhost:83/ping",
		"[::1]:84": "http://[::1]:84/ping", "unix:/run/a b": "curl --unix-socket '/run/a b' -i http://localhost/ping",
	} {
		if _, help, _ := inProcess(t, "demo", "--listen", listen, "--help"); !strings.Contains(help, want) {
			t.Errorf("--listen %s: the help has no %s", listen, want)
		}
	}
}

// Tokens of one start are not accepted after another.
func TestDemoTokens(t *testing.T) {
	t.Parallel()
	tokens := regexp.MustCompile(`Bearer ([\w.-]{20,})`)
	one, lines := startDemo(t, "--listen", "127.0.0.1:0", "--log", "off")
	two, _ := startDemo(t, "--listen", "127.0.0.1:0", "--log", "off")
	all := map[string]bool{}
	for _, l := range lines {
		if m := tokens.FindStringSubmatch(l.Curl); m != nil {
			all[m[1]] = true
		}
	}
	if len(all) != 2 {
		t.Fatalf("%d tokens, want a fixed one and a JSON Web Token", len(all))
	}
	c := newClient(t, "")
	for token := range all {
		for p, want := range map[*proc]int{one: http.StatusOK, two: http.StatusUnauthorized} {
			req, _ := http.NewRequest("GET", p.urls[0]+"users/1", nil)
			req.Header.Set("Authorization", "Bearer "+token)
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("%s: %d, want %d", token, res.StatusCode, want)
			}
		}
	}
}

// A stream would hold the stop up until it is cut off, which is a failure.
func TestDemoClockEndsAtShutdown(t *testing.T) {
	t.Parallel()
	needSignals(t)
	p, _ := startDemo(t, "--listen", "127.0.0.1:0")
	res, err := newClient(t, "").Get(p.urls[0] + "clock")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	events := bufio.NewScanner(res.Body)
	if !events.Scan() || !strings.HasPrefix(events.Text(), "data: ") {
		t.Fatalf("%q is no event", events.Text())
	}
	get(t, newClient(t, ""), p.urls[0]+"files/chert.txt")
	p.signal(os.Interrupt)
	for events.Scan() {
	}
	if err := events.Err(); err != nil {
		t.Errorf("the stream was cut off: %v", err)
	}
	out, err := io.ReadAll(p.stdout)
	if text := string(out); err != nil || !strings.Contains(text, "chert: 2 requests and ") || strings.Contains(text, "from the cache") {
		t.Errorf("it ends with %q, %v", out, err)
	}
	p.waitFor(exitOK)
	if log := p.stderr.String(); !strings.Contains(log, "path=/clock status=200") {
		t.Errorf("the log has no clock: %s", log)
	}
}

func TestDemoCommandLine(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"demo .", exitUsage, `to serve a folder: "chert serve DIR"`},
		{"demo --shutdown-timeout -1s", exitUsage, "negative"},
		{"demo -q --log json", exitUsage, "contradict"},
		{"demo --log xml", exitUsage, "want off, common, combined, vhost, text or json"},
		{"demo --listen " + taken.Addr().String(), exitFailure, "already in use"},
	} {
		code, stdout, stderr := inProcess(t, strings.Fields(tt.args)...)
		if code != tt.code || stdout != "" || !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("chert %s: %d %q %q", tt.args, code, stdout, stderr)
		}
	}
}
