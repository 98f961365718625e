package chert_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The README's commands and program make a server in another module: the second way is that
// of docs/library.md.
func TestFromAnotherModule(t *testing.T) {
	t.Parallel()
	readme, library := readPage(t, "README.md"), readPage(t, "docs/library.md")
	_, program, ok := strings.Cut(readme, "```go\n")
	program, _, closed := strings.Cut(program, "```")
	if !ok || !closed {
		t.Fatal("README.md has no program")
	}
	for was, is := range map[string]string{
		// A free port, which the program prints.
		`Addr: ":8080"`: `Addr: "127.0.0.1:0", BaseContext: func(l net.Listener) context.Context { fmt.Println(l.Addr()); return context.Background() }`,
		`	"net/http"`:   "	\"context\"\n	\"net\"\n	\"net/http\"",
	} {
		if !strings.Contains(program, was) {
			t.Fatalf("the program does not have %s", was)
		}
		program = strings.Replace(program, was, is, 1)
	}
	for name, tt := range map[string]struct{ page, commands, env string }{
		// It needs the go.mod files of modules that only chert's tools use too: they may have to be downloaded.
		"workspace": {readme, "go mod init example.com/hello\ngo work init . ../chert", "GOSUMDB=off"},
		// What chert itself was built with is in the module cache. Without its sums go would ask sum.golang.org.
		"replacement": {library, "go mod init example.com/hello\ngo mod edit -replace github.com/chert-http/chert=../chert\ncp ../chert/go.sum .\ngo get github.com/chert-http/chert", "GOPROXY=off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644); err != nil {
				t.Fatal(err)
			}
			goCommand := func(args ...string) *exec.Cmd {
				cmd := exec.CommandContext(t.Context(), "go", args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GOWORK=", "GOFLAGS=-buildvcs=false")
				if tt.env != "" {
					cmd.Env = append(cmd.Env, tt.env)
				}
				return cmd
			}
			for command := range strings.SplitSeq(tt.commands, "\n") {
				if !strings.Contains(tt.page, "\n    "+command+"\n") && !strings.Contains(readme, "\n    "+command+"\n") {
					t.Errorf("the page does not have %q", command)
				}
				args := strings.Fields(strings.Replace(command, "../chert", here, 1))
				if args[0] == "cp" {
					copyFile(t, args[1], filepath.Join(dir, args[2], filepath.Base(args[1])))
					continue
				}
				if out, err := goCommand(args[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", command, err, out)
				}
			}
			bin := filepath.Join(dir, "hello.exe")
			if out, err := goCommand("build", "-o", bin, ".").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			// HTTP/3 is for those that import it.
			deps, err := goCommand("list", "-deps", ".").Output()
			if err != nil || strings.Contains(string(deps), "quic") {
				t.Errorf("%v: it is built of\n%s", err, deps)
			}
			says(t, bin)
		})
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// says runs the README's program and sends it a request.
func says(t *testing.T, bin string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := c.Get("http://" + strings.TrimSpace(addr) + "/hello/reader")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); string(body) != "Hello, reader!\n" || err != nil {
		t.Errorf("it says %q (%v)", body, err)
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
