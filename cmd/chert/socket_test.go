package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSocketInUse(t *testing.T) {
	t.Parallel()
	sock := filepath.Join(shortDir(t), "s")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	oneLine(t, exitFailure, `chert: the socket "`+sock+
		`" is in use; stop the program that holds it or choose another path for --listen`,
		"serve", t.TempDir(), "--listen", "unix:"+sock)
	if _, err := os.Lstat(sock); err != nil {
		t.Errorf("the socket of the other program is gone: %v", err)
	}
}

// A socket that is given twice is a mistake, however its path is spelt.
func TestSocketTwice(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	if err := os.Symlink(".", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	for _, same := range []string{dir + "/./s", dir + "/link/s", dir + "/link/./link/s"} {
		oneLine(t, exitUsage, `chert: invalid argument "unix:`+same+
			`" for "-l, --listen" flag: it is given already; see "chert serve --help"`,
			"serve", t.TempDir(), "--listen", "unix:"+dir+"/s", "--listen", "unix:"+same)
	}
	file := filepath.Join(dir, "c.toml")
	write(t, file, "listen = ['unix:s', 'unix:link/s']\nadmin = 'unix:"+dir+"/link/s'\n"+
		"[[redirect]]\nhosts = '*'\nto = 'http://a/'\n")
	want := file + `:1:21: listen: "unix:link/s": it is given already` + "\n" + file + ":2:9: admin: it is given already\n"
	if code, _, stderr := inProcess(t, "check", file); code != exitFailure || stderr != want {
		t.Errorf("%d %q, want %q", code, stderr, want)
	}
}

func TestSameSocket(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	for _, name := range []string{"one/sub", "two"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "one", "deep": "one/sub", "lost": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"one/s", "link/s", true},
		{"one/s", "two/s", false},
		{"one/s", "link/r", false},
		{"one/s", "deep/../s", true}, // the system follows the link before it goes up
		{"s", "deep/../s", false},
		{"s", "./one/../s", true},
		{"none/s", "./none/s", true}, // a folder that is not there yet
		{"none/s", "none/r", false},
		{"lost/s", "./lost/s", true},
		{"lost/s", "one/s", false},
	} {
		a := endpoint{network: "unix", address: dir + "/" + tt.a}
		b := endpoint{network: "unix", address: dir + "/" + tt.b}
		if a.same(b) != tt.same || b.same(a) != tt.same {
			t.Errorf("%s and %s: %v, want %v", tt.a, tt.b, a.same(b), tt.same)
		}
	}
	// In the current folder.
	if a, b := (endpoint{network: "unix", address: "s"}), (endpoint{network: "unix", address: absolute("s")}); !a.same(b) {
		t.Errorf("%s and %s are not the same", a, b)
	}
}

// Nothing but a socket is ever replaced.
func TestSocketPathIsSomethingElse(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	write(t, filepath.Join(dir, "file"), "precious")
	write(t, filepath.Join(dir, "folder", "file"), "precious")
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "folder", "link"} {
		path := filepath.Join(dir, name)
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		oneLine(t, exitFailure, `chert: "`+path+
			`" exists and is not a socket; choose another path for --listen or remove it`,
			"serve", t.TempDir(), "--listen", "unix:"+path)
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was touched: %v", name, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(got) != "precious" {
		t.Errorf("file: %q %v", got, err)
	}
}

func TestSocketErrors(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	deep := filepath.Join(dir, "missing", "s")
	oneLine(t, exitFailure, `chert: no folder for the socket "`+deep+`"; create "`+filepath.Dir(deep)+`" first`,
		"serve", t.TempDir(), "--listen", "unix:"+deep)
	long := filepath.Join(dir, strings.Repeat("s", 150))
	oneLine(t, exitFailure, `chert: the path of the socket "`+long+`" is too long; the system takes about 100 bytes`,
		"serve", t.TempDir(), "--listen", "unix:"+long)
}

// A server that is killed leaves its socket file; the next one replaces it.
func TestStaleSocket(t *testing.T) {
	needSignals(t)
	t.Parallel()
	sock := filepath.Join(shortDir(t), "s")
	dir := folder(t, map[string]string{"f": "second life"})
	first := start(t, dir, "--listen", "unix:"+sock)
	first.signal(os.Kill)
	first.wait()
	if _, err := os.Lstat(sock); err != nil {
		t.Fatalf("no stale socket to test with: %v", err)
	}
	second := start(t, dir, "--listen", "unix:"+sock)
	if status, body := get(t, newClient(t, sock), "http://unix/f"); status != 200 || body != "second life" {
		t.Errorf("%d %q", status, body)
	}
	second.signal(syscall.SIGTERM)
	second.waitFor(exitOK)
	if _, err := os.Lstat(sock); !os.IsNotExist(err) {
		t.Errorf("the socket file is still there: %v", err)
	}
}

// Datagram sockets respond to a connection attempt with another error than a refusal, and may well be in use.
func TestSocketOfAnotherKind(t *testing.T) {
	t.Parallel()
	sock := filepath.Join(shortDir(t), "s")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: sock, Net: "unixgram"})
	if err != nil {
		t.Skip("no datagram sockets here: ", err)
	}
	defer c.Close()
	code, _, stderr := inProcess(t, "serve", t.TempDir(), "--listen", "unix:"+sock)
	if code != exitFailure || !strings.HasPrefix(stderr, "chert: cannot tell whether the socket") {
		t.Errorf("%d %s", code, stderr)
	}
	if _, err := os.Lstat(sock); err != nil {
		t.Errorf("the socket of the other program is gone: %v", err)
	}
}

// A successor's socket file is not removed, even if its inode number is the old one's.
func TestSocketFileRemove(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	write(t, path, "")
	made, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	later := made.ModTime().Add(1)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	(&socketFile{path: path, made: made}).remove()
	now, err := os.Lstat(path)
	if err != nil {
		t.Fatal("removed the successor's file")
	}
	if now.ModTime().Equal(made.ModTime()) {
		t.Skip("file times are too coarse here")
	}
	(&socketFile{path: path, made: now}).remove()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Error("left the file behind")
	}
}
