//go:build unix

package documents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/freeport"
)

// patience is when a command that hangs is ended.
const patience = 5 * time.Minute

// ports are those that pages use. A session has free ones in their place.
var ports = []string{"8080", "8443", "8081", "9080", "9000"}

// A session executes the blocks of a page, or of a section of one, in order.
type session struct {
	t         *testing.T
	dir       string // where commands begin
	at        string // the current folder
	env       []string
	replaced  *strings.Replacer
	terminals map[string]*terminal
}

func newSession(t *testing.T) *session {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatalf("%v\n%s", err, bin)
	}
	root, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	s := &session{t: t, dir: filepath.Join(parent, "session"), terminals: map[string]*terminal{}}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// The clone that pages speak of.
	if err := os.Symlink(root, filepath.Join(s.dir, "chert")); err != nil {
		t.Fatal(err)
	}
	s.at = s.dir
	var pairs []string
	for _, p := range ports {
		pairs = append(pairs, p, freeport.Port(t))
	}
	s.replaced = strings.NewReplacer(pairs...)
	// What chert itself is built of is in the module cache.
	s.env = append(os.Environ(), "PATH="+filepath.Join(parent, "bin")+":"+bin+":"+os.Getenv("PATH"), "GOBIN="+filepath.Join(parent, "bin"), "GOWORK=", "GOSUMDB=off", "GOPROXY=off", "GOFLAGS=-buildvcs=false", "GOTOOLCHAIN=local",
		"NO_PROXY=*", "LC_ALL=C")
	t.Cleanup(func() {
		for _, term := range s.terminals {
			term.kill()
		}
	})
	return s
}

// command prepares a line for bash. The folder in which it ends is that of the next one.
func (s *session) command(line string) *exec.Cmd {
	script := line + "\nstatus=$?\npwd > \"$CHERT_SESSION_PWD\"\nexit $status"
	cmd := exec.CommandContext(s.t.Context(), "bash", "-c", script)
	cmd.Dir = s.at
	cmd.Env = append(s.env[:len(s.env):len(s.env)], "CHERT_SESSION_PWD="+filepath.Join(filepath.Dir(s.dir), "pwd"), "PWD="+s.at)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// A step is a command of a console block, with the output that the page shows.
type step struct {
	command string
	output  []string
	line    int
}

func steps(b block) (all []step) {
	lines := strings.Split(strings.TrimRight(b.text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		c, ok := strings.CutPrefix(lines[i], "$ ")
		if !ok {
			if len(all) > 0 {
				all[len(all)-1].output = append(all[len(all)-1].output, lines[i])
			}
			continue
		}
		all = append(all, step{line: b.line + i})
		for strings.HasSuffix(c, `\`) && i+1 < len(lines) {
			i++
			c += "\n" + lines[i]
		}
		all[len(all)-1].command = c
	}
	return all
}

// run executes the commands of a console block.
func (s *session) run(b block) {
	s.t.Helper()
	all := steps(b)
	if len(all) == 0 {
		s.t.Fatalf("%s:%d: no command after \"$ \"", b.page, b.line)
	}
	if name := b.markers["terminal"]; name != "" {
		s.start(name, b, all[0])
		all = all[1:]
	}
	for i, st := range all {
		cmd := s.command(s.replaced.Replace(st.command))
		timer := time.AfterFunc(patience, func() { cmd.Cancel() })
		out, err := cmd.CombinedOutput()
		timer.Stop()
		want := "0"
		if i == len(all)-1 && b.markers["exit"] != "" {
			want = b.markers["exit"]
		}
		if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != want {
			s.t.Fatalf("%s:%d: %s: exit code %s (%v), want %s\n%s", b.page, st.line, st.command, got, err, want, out)
		}
		if len(st.output) > 0 && !matches(s.replaced.Replace(strings.Join(st.output, "\n")), strings.TrimRight(string(out), "\n")) {
			s.t.Fatalf("%s:%d: %s prints\n%s\nthe page has\n%s", b.page, st.line, st.command, out, strings.Join(st.output, "\n"))
		}
		if pwd, err := os.ReadFile(filepath.Join(filepath.Dir(s.dir), "pwd")); err == nil {
			s.at = strings.TrimSpace(string(pwd))
		}
	}
}

// matches reports whether an output is what a page shows: "..." in it stands for
// anything in a line, and alone in a line for any lines. A page need not show empty lines
// and space at the ends of lines.
func matches(page, output string) bool {
	pattern := "^"
	for line := range strings.SplitSeq(clean(page), "\n") {
		if line == "..." {
			pattern += `(?:[^\n]*\n)*`
			continue
		}
		pattern += strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, `[^\n]*`) + `\n`
	}
	return regexp.MustCompile(pattern + "$").MatchString(clean(output) + "\n")
}

func clean(text string) string {
	var lines []string
	for l := range strings.SplitSeq(strings.ReplaceAll(text, "\r", ""), "\n") {
		if l = strings.TrimRight(l, " \t"); l != "" {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "\n")
}

// A terminal has a command that goes on.
type terminal struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the command has ended
	mu   sync.Mutex
	text strings.Builder
	news chan struct{}
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(p)
	select {
	case t.news <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (t *terminal) output() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

func (t *terminal) kill() {
	syscall.Kill(-t.cmd.Process.Pid, syscall.SIGKILL)
	<-t.done
}

// start begins a command and waits until it has printed what the page shows.
func (s *session) start(name string, b block, st step) {
	s.t.Helper()
	term := &terminal{cmd: s.command(s.replaced.Replace(st.command)), done: make(chan struct{}), news: make(chan struct{}, 1)}
	term.cmd.Stdout, term.cmd.Stderr = term, term
	if err := term.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.terminals[name] = term
	go func() {
		term.cmd.Wait()
		close(term.done)
	}()
	s.await(term, strings.Join(st.output, "\n"), b)
}

// await waits until a terminal shows what the page does.
func (s *session) await(term *terminal, want string, b block) {
	s.t.Helper()
	want = s.replaced.Replace(want)
	late := time.After(patience)
	for !matches(want, term.output()) {
		select {
		case <-term.news:
		case <-term.done:
			if !matches(want, term.output()) {
				s.t.Fatalf("%s:%d: the command has ended after\n%s\nthe page has\n%s", b.page, b.line, term.output(), want)
			}
		case <-late:
			s.t.Fatalf("%s:%d: the terminal shows\n%s\nthe page has\n%s", b.page, b.line, term.output(), want)
		}
	}
}

// interrupt is Ctrl-C in a terminal.
func (s *session) interrupt(name string, b block) {
	s.t.Helper()
	term := s.terminals[name]
	if term == nil {
		s.t.Fatalf("%s:%d: no terminal %s", b.page, b.line, name)
	}
	// To the group, as from a terminal: bash waits for its command, and has its status.
	if err := syscall.Kill(-term.cmd.Process.Pid, syscall.SIGINT); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-term.done:
		// curl ends by the signal, a server with 0.
		status := term.cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.ExitStatus() != 0 && status.Signal() != syscall.SIGINT {
			s.t.Fatalf("%s:%d: the command in the terminal %s ends with %v\n%s", b.page, b.line, name, term.cmd.ProcessState, term.output())
		}
	case <-time.After(patience):
		term.kill()
		s.t.Fatalf("%s:%d: the command in the terminal %s does not end\n%s", b.page, b.line, name, term.output())
	}
}

// follow executes blocks in order.
func (s *session) follow(blocks []block) {
	for _, b := range blocks {
		if _, skipped := b.markers["skip"]; skipped {
			continue
		}
		switch {
		case b.language == "interrupt":
			s.interrupt(b.markers["interrupt"], b)
		case b.markers["file"] != "":
			file := filepath.Join(s.at, b.markers["file"])
			write(s.t, file, s.replaced.Replace(b.text))
		case b.markers["shows"] != "":
			term := s.terminals[b.markers["shows"]]
			if term == nil {
				s.t.Fatalf("%s:%d: no terminal %s", b.page, b.line, b.markers["shows"])
			}
			s.await(term, "...\n"+b.text, b)
		case b.language == "console":
			s.run(b)
		}
	}
}

// The sessions of all pages print what the pages show.
func TestSessions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sessions run programs of their own, in which the race detector sees nothing")
	}
	for _, page := range pages(t) {
		whole := false
		sessions := map[int][]block{}
		for _, b := range blocksOf(t, page) {
			whole = whole || b.language == "session"
			if whole {
				b.section = 0
			}
			sessions[b.section] = append(sessions[b.section], b)
		}
		for section, blocks := range sessions {
			if !runs(blocks) {
				continue
			}
			t.Run(fmt.Sprintf("%s-%d", strings.ReplaceAll(page, "/", "-"), section), func(t *testing.T) {
				t.Parallel()
				for _, b := range blocks {
					needs(t, b)
				}
				newSession(t).follow(blocks)
			})
		}
	}
}

func runs(blocks []block) bool {
	for _, b := range blocks {
		if _, skipped := b.markers["skip"]; b.language == "console" && !skipped {
			return true
		}
	}
	return false
}

// needs skips a session for which a program is missing.
func needs(t *testing.T, b block) {
	t.Helper()
	programs := strings.Fields(b.markers["needs"])
	if b.language == "console" && strings.Contains(b.text, "$ curl ") {
		programs = append(programs, "curl")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
				t.Fatal(err)
			}
			t.Skipf("%s:%d: no %s, which Debian has in a package of that name", b.page, b.line, p)
		}
	}
}

// What a page shows stands for what is printed.
func TestMatches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		page, output string
		want         bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"a", "a\nb", false}, {"a ... c", "a b c", true}, {"a...", "a", true},
		{"...", "a\nb", true}, {"a\n...\nd", "a\nb\nc\nd", true}, {"a\n...\nd", "a\nd", true}, {"a\n...", "b\n", false}, {"a...c", "a\nc", false},
		{"a.c", "abc", false}, {"a\n\nb", "a\nb  ", true}, {"a", "a\r\n", true}, {"", "", true}, {"", "a", false},
	} {
		if got := matches(tt.page, tt.output); got != tt.want {
			t.Errorf("%q, %q: %t", tt.page, tt.output, got)
		}
	}
}
