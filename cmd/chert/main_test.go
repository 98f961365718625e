package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// patience is when a test that hangs is ended. No other test waits for it.
const patience = 3 * time.Minute

var binDir string

func TestMain(m *testing.M) {
	var err error
	binDir, err = os.MkdirTemp("", "chert-bin")
	if err == nil {
		err = os.Chmod(binDir, 0o755) // some tests run the binary as another user
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(binDir)
	os.Exit(code)
}

// binary is the path of the program, built once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", binDir+string(filepath.Separator), ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return filepath.Join(binDir, "chert"+exeSuffix()), nil
})

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// proc is a running chert. Its methods belong to the test's own goroutine.
type proc struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr servertest.Log
	urls   []string // from the start-up line
}

// command prepares the binary. It is killed at the end of the test or of patience.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, bin, args...)
}

// launch starts the binary and reads nothing yet.
func launch(t *testing.T, args ...string) *proc {
	t.Helper()
	p := &proc{t: t, cmd: command(t, args...)}
	p.launch()
	return p
}

func (p *proc) launch() {
	p.t.Helper()
	if p.cmd.Stderr == nil {
		p.cmd.Stderr = &p.stderr
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.stdout = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.cmd.Process.Kill()
			p.cmd.Wait()
		}
	})
}

// start launches "chert serve" and waits until it says where it listens.
func start(t *testing.T, args ...string) *proc {
	t.Helper()
	p := &proc{t: t, cmd: command(t, append([]string{"serve"}, args...)...)}
	p.begin()
	return p
}

var urlPattern = regexp.MustCompile(`(https?://|unix:)[^ ,\n]+`)

func (p *proc) begin() {
	p.t.Helper()
	p.launch()
	line := p.line()
	_, where, ok := strings.Cut(line, `" at `)
	if !ok {
		p.t.Fatalf("start-up line %q names no address", line)
	}
	p.urls = urlPattern.FindAllString(where, -1)
}

// line reads the next line of stdout.
func (p *proc) line() string {
	p.t.Helper()
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		code := p.wait()
		p.t.Fatalf("chert ended with code %d instead of printing a line; stderr: %s", code, p.stderr.String())
	}
	return line
}

func (p *proc) signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// wait returns the exit code, -1 if chert was killed.
func (p *proc) wait() int {
	p.t.Helper()
	io.Copy(io.Discard, p.stdout)
	err := p.cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		p.t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *proc) waitFor(code int) {
	p.t.Helper()
	if got := p.wait(); got != code {
		p.t.Fatalf("exit code %d, want %d; stderr: %s", got, code, p.stderr.String())
	}
}

// newClient returns a client that goes to the socket if there is one, and shares no connection with other tests.
func newClient(t *testing.T, socket string) *http.Client {
	tr := &http.Transport{}
	if socket != "" {
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

// send sends a request, whose URL is base and path, and reads the whole response.
func send(t *testing.T, c *http.Client, base, path, host string, head http.Header) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	if head != nil {
		req.Header = head
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, string(body), res.Header}
}

// get fetches url and returns the status and the body.
func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	r := send(t, c, url, "", "", nil)
	return r.status, r.body
}

// inProcess calls run in this process. It is for commands that end by themselves: nothing can stop them.
func inProcess(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- run(append([]string{}, args...), &out, &errs) }() // nil would be the test's own
	select {
	case code := <-done:
		return code, out.String(), errs.String()
	case <-time.After(patience):
		t.Fatalf("chert %q goes on instead of ending", args)
		panic("unreachable")
	}
}

// folder makes a folder with the given files.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), body)
	}
	return dir
}

func write(t testing.TB, path, body string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
}

// writeProgram makes a file that can be run at once. A process that another test starts has, until it runs its own
// program, all files of this one, and a file that is open for writing cannot be run: none is to start meanwhile.
func writeProgram(t testing.TB, path string, content []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, content, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}

// shortDir is for socket files, whose paths must be short, and for files that other users must reach.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chert")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// needSignals skips where a process cannot be sent SIGTERM.
func needSignals(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows cannot send these signals")
	}
}
