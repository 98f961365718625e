package static

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// A link that leads out is 404 and explained in the log, once a minute; a name
// that is not there is not.
func TestOutwardLinksAreLogged(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"as it is", "os.Root"} {
		var out bytes.Buffer
		s := newSite(t, map[string]string{"a.txt": "a", "dir/b.txt": "b"}, &Options{Listing: true, Logger: newLog(&out)})
		for from, to := range map[string]string{"out\n.txt": "/etc/hosts", "far": "/etc", "dir/index.html": "/etc/hosts", "dangling": "nowhere"} {
			if err := os.Symlink(to, s.path(from)); err != nil {
				t.Skip(err) // Windows asks for a privilege
			}
		}
		if how == "os.Root" {
			tr, err := openRootTree(s.dir)
			if err != nil {
				t.Fatal(err)
			}
			useTree(s, tr)
		}
		for _, tt := range []struct {
			target string
			status int
			logged string // of the path, "" for nothing
			pass   time.Duration
		}{
			{"/nope", 404, "", 0},
			{"/dangling", 404, "", 0},
			{"/out%0a.txt", 404, `"out\n.txt"`, 0},
			{"/out%0a.txt", 404, "", 0},
			{"/far/", 404, "", 59 * time.Second},
			{"/far/hosts", 404, "far/hosts", 2 * time.Second},
			{"/dir/", 200, "dir/index.html", time.Minute}, // it is listed instead
			{"/a.txt", 200, "", time.Minute},
		} {
			s.pass(tt.pass)
			before := out.Len()
			if got := s.status(tt.target); got != tt.status {
				t.Errorf("%s, %s: %d", how, tt.target, got)
			}
			want := ""
			if tt.logged != "" {
				want = `level=WARN msg="a link leads out of the folder; what is there is not served" file=` + tt.logged + "\n"
			}
			if got := out.String()[before:]; got != want {
				t.Errorf("%s, %s: logged %q, want %q", how, tt.target, got, want)
			}
			if strings.Contains(out.String(), s.dir) {
				t.Errorf("%s: the log names the folder", how)
			}
		}
	}
}

// Names are hidden, not what they lead to: a link inside the folder is served by its own
// name. The volumes of Kubernetes depend on it, whose files are links to ..data/FILE.
// docs/files.md says what that means for secrets.
func TestLinkToHiddenName(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"as it is", "os.Root"} {
		s := newSite(t, map[string]string{".secret": "made visible", "..2026/app.txt": "app", "..2026/sub/x.txt": "x"}, &Options{Listing: true})
		for from, to := range map[string]string{"visible": ".secret", "..data": "..2026", "app.txt": "..data/app.txt", "sub": "..data/sub", ".alias": "app.txt"} {
			if err := os.Symlink(to, s.path(from)); err != nil {
				t.Skip(err) // Windows asks for a privilege
			}
		}
		if how == "os.Root" {
			tr, err := openRootTree(s.dir)
			if err != nil {
				t.Fatal(err)
			}
			useTree(s, tr)
		}
		for target, want := range map[string]int{
			"/visible": 200, "/app.txt": 200, "/sub/x.txt": 200, // the site's owner has named them
			"/.secret": 404, "/..data/app.txt": 404, "/..2026/app.txt": 404, "/.alias": 404,
		} {
			if got := s.status(target); got != want {
				t.Errorf("%s, %s: %d, want %d", how, target, got, want)
			}
		}
	}
}
