package documents

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

var binDir string

func TestMain(m *testing.M) {
	var err error
	if binDir, err = os.MkdirTemp("", "chert-documents"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(binDir)
	os.Exit(code)
}

// built is the folder of the command, and of a certificate for example.com with its key.
var built = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", binDir+string(filepath.Separator), module+"/cmd/chert")
	if out, err := cmd.CombinedOutput(); err != nil {
		return string(out), err
	}
	out, err := exec.Command(filepath.Join(binDir, name("chert")), "cert", "--dir", binDir, "example.com", "*.example.com", "localhost").CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return binDir, nil
})

func name(program string) string {
	if runtime.GOOS == "windows" {
		return program + ".exe"
	}
	return program
}

// chert runs the command in a folder and returns its output, both streams, and exit code.
func chert(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatalf("%v\n%s", err, bin)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, name("chert")), args...)
	cmd.Dir = dir
	var o, e strings.Builder
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// each runs a test for each block of a language that is not skipped.
func each(t *testing.T, language string, check func(t *testing.T, b block)) {
	t.Helper()
	for _, page := range pages(t) {
		for _, b := range blocksOf(t, page) {
			if _, skipped := b.markers["skip"]; skipped || b.language != language {
				continue
			}
			t.Run(strings.ReplaceAll(b.page, "/", "-"), func(t *testing.T) {
				t.Parallel()
				check(t, b)
			})
		}
	}
}

var (
	systemPath = regexp.MustCompile(`"/(srv|etc|var|usr)/`)
	folderKey  = regexp.MustCompile(`(?m)^\s*(?:root|follow)\s*=\s*\[?"([^"]+)"`)
	fileKey    = regexp.MustCompile(`(?m)(?:^\s*|[{,] *)(?:[45]\d\d|"[45]xx"|default|file|htpasswd)\s*=\s*"([^"]+)"`)
	certKey    = regexp.MustCompile(`(?m)^\s*(tls_cert|tls_key|client_ca|ca)\s*=\s*"([^"]+)"`)
	siteLine   = regexp.MustCompile(`(?m)^\[\[(site|redirect)\]\]`)
	siteTable  = regexp.MustCompile(`(?m)^\[+site\.`)
)

// valid checks a configuration, whole or a part: it is completed by a site, and the
// files and folders that it names are made.
func valid(t *testing.T, b block, text string) {
	t.Helper()
	dir := t.TempDir()
	const site = "[[site]]\nhosts = [\"*\"]\nroot = \"www\"\n"
	first, part := siteLine.FindStringIndex(text), siteTable.FindStringIndex(text)
	switch {
	case part != nil && (first == nil || part[0] < first[0]):
		text = text[:part[0]] + site + text[part[0]:]
	case first == nil && !siteKey.MatchString(text):
		text += "\n" + site
	case first == nil:
		text = site + text
	}
	text += "\n" + b.markers["given"] + "\n"
	text = systemPath.ReplaceAllString(text, `"`+filepath.ToSlash(dir)+`/$1/`)
	in := func(p string) string {
		if filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(dir, p)
	}
	for _, m := range folderKey.FindAllStringSubmatch(text, -1) {
		write(t, filepath.Join(in(m[1]), "index.html"), "<p>index")
	}
	for _, m := range fileKey.FindAllStringSubmatch(text, -1) {
		write(t, in(m[1]), "")
	}
	for _, m := range certKey.FindAllStringSubmatch(text, -1) {
		from := map[string]string{"tls_cert": "cert.pem", "tls_key": "key.pem", "client_ca": "ca.pem", "ca": "ca.pem"}[m[1]]
		bin, err := built()
		if err != nil {
			t.Fatalf("%v\n%s", err, bin)
		}
		pem, err := os.ReadFile(filepath.Join(bin, from))
		if err != nil {
			t.Fatal(err)
		}
		write(t, in(m[2]), string(pem))
	}
	write(t, filepath.Join(dir, "chert.toml"), text)
	if _, stderr, code := chert(t, dir, "check", "chert.toml"); code != 0 {
		t.Errorf("%s:%d: chert check: %s\nof\n%s", b.page, b.line, stderr, text)
	}
}

// siteKey is a key of a site that is shown without its table.
var siteKey = regexp.MustCompile(`(?m)^(try|headers|hidden|proxy|spa) = `)

func TestTOML(t *testing.T) {
	t.Parallel()
	each(t, "toml", func(t *testing.T, b block) { valid(t, b, b.text) })
}

// adapted translates the configuration of another server, and checks the result.
func adapted(t *testing.T, b block, from string) {
	t.Helper()
	text := b.text
	if from == "nginx" && !regexp.MustCompile(`(?m)^server \{`).MatchString(text) {
		text = "server {\nlisten 8080;\n" + text + "}\n"
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "other"), text)
	stdout, stderr, code := chert(t, dir, "adapt", "--from", from, "other")
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "other:") {
			code = -1
		}
	}
	if code != 0 && code != 1 {
		t.Errorf("%s:%d: chert adapt: %d %s", b.page, b.line, code, stderr)
		return
	}
	valid(t, b, stdout)
}

func TestNginx(t *testing.T) {
	t.Parallel()
	each(t, "nginx", func(t *testing.T, b block) { adapted(t, b, "nginx") })
}

func TestCaddyfile(t *testing.T) {
	t.Parallel()
	each(t, "caddyfile", func(t *testing.T, b block) { adapted(t, b, "caddy") })
}

func TestJSON(t *testing.T) {
	t.Parallel()
	each(t, "json", func(t *testing.T, b block) {
		if !json.Valid([]byte(b.text)) {
			t.Errorf("%s:%d: not JSON", b.page, b.line)
		}
	})
}

// Units of systemd: sections, and the keys of one.
func TestINI(t *testing.T) {
	t.Parallel()
	line := regexp.MustCompile(`^(\[(Unit|Service|Socket|Install)\]|[A-Z][A-Za-z]+=.*|#.*|)$`)
	each(t, "ini", func(t *testing.T, b block) {
		for i, l := range strings.Split(b.text, "\n") {
			if !line.MatchString(l) {
				t.Errorf("%s:%d: no line of a unit: %s", b.page, b.line+i, l)
			}
		}
	})
}
