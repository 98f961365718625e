package sys

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestOpenBeneath(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "in")
	os.MkdirAll(filepath.Join(dir, "sub"), 0o777)
	os.WriteFile(filepath.Join(base, "out"), []byte("out"), 0o666)
	os.WriteFile(filepath.Join(dir, "f"), []byte("inside"), 0o666)
	os.Symlink("../out", filepath.Join(dir, "up"))
	os.Symlink(filepath.Join(dir, "f"), filepath.Join(dir, "abs"))
	os.Symlink("../f", filepath.Join(dir, "sub", "back"))
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	fd := int(d.Fd())
	for _, tt := range []struct {
		name  string
		flags int
		want  Errno
	}{
		{"f", OpenFile, 0}, {".", OpenPath, 0}, {"sub", OpenFolder, 0}, {"sub/back", OpenFile, 0}, {"sub/../f", OpenFile, 0},
		{"up", OpenFile, syscall.EXDEV}, {"../out", OpenFile, syscall.EXDEV}, {"..", OpenPath, syscall.EXDEV}, {"sub/../../out", OpenFile, syscall.EXDEV},
		{"abs", OpenFile, syscall.EXDEV}, {"/etc/passwd", OpenFile, syscall.EXDEV},
		{"nope", OpenFile, syscall.ENOENT}, {"f", OpenFolder, syscall.ENOTDIR}, {"f/x", OpenFile, syscall.ENOTDIR},
	} {
		n, e := OpenBeneath(fd, tt.name, tt.flags)
		if e == syscall.ENOSYS || e == syscall.EPERM {
			t.Skip("no openat2 here")
		}
		if e == 0 {
			Close(n)
		}
		if e != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, e, tt.want)
		}
	}
	var at, open, link FileStat
	n, e := OpenBeneath(fd, "f", OpenFile)
	if e != 0 {
		t.Fatal(e)
	}
	defer Close(n)
	if StatAt(fd, "f", true, &at) != 0 || StatFd(n, &open) != 0 || at != open || !at.IsRegular() || at.Size != 6 || at.Links != 1 {
		t.Errorf("got %+v, %+v", at, open)
	}
	if StatAt(fd, "up", false, &link) != 0 || !link.IsLink() {
		t.Errorf("got %+v", link)
	}
	b := make([]byte, 10)
	if m, e := ReadFile(n, b); e != 0 || string(b[:m]) != "inside" {
		t.Errorf("got %q, %v", b[:m], e)
	}
	if m, e := ReadFile(n, b); m != 0 || e != 0 {
		t.Errorf("at the end: %d, %v", m, e)
	}
}
