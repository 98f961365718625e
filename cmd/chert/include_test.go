package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A site that is a file is added, changed and removed with it, by a reload; a mistake in it
// leaves everything as it is.
func TestIncludeReload(t *testing.T) {
	t.Parallel()
	needSignals(t)
	p, file := startConfig(t, "include = 'sites/*.toml'\n[[site]]\nhosts = 'main.example'\nroot = 'www'\n", map[string]string{
		"www/f": "main", "sites/a/f": "of a", "sites/b/f": "of b", "sites/a.toml": "[[site]]\nhosts = 'a.example'\nroot = 'a'\n",
	})
	c := newClient(t, "")
	want := func(bodies map[string]string) {
		t.Helper()
		for host, body := range bodies {
			if _, got := getHost(t, c, p.urls[0], host, "f"); got != body {
				t.Errorf("%s: %q, want %q", host, got, body)
			}
		}
	}
	none := "421 no site of that name is served here\n"
	want(map[string]string{"main.example": "main", "a.example": "of a", "b.example": none})

	sites := filepath.Join(filepath.Dir(file), "sites")
	write(t, filepath.Join(sites, "b.toml"), "[[site]]\nhosts = 'b.example'\nroot = 'b'\n")
	p.reload()
	want(map[string]string{"main.example": "main", "a.example": "of a", "b.example": "of b"})

	write(t, filepath.Join(sites, "b.toml"), "[[site]]\nhosts = 'a.example'\nroot = 'b'\n")
	said := p.refuse()
	for _, part := range []string{
		filepath.Join(sites, "b.toml") + `:2:9: host "a.example" has a site already, in `, filepath.Join(sites, "a.toml") + ":2:9\n",
	} {
		if !strings.Contains(said, part) {
			t.Errorf("%q is not in %q", part, said)
		}
	}
	want(map[string]string{"main.example": "main", "a.example": "of a", "b.example": "of b"})

	if err := os.Remove(filepath.Join(sites, "a.toml")); err != nil {
		t.Fatal(err)
	}
	p.reload()
	want(map[string]string{"main.example": "main", "a.example": "of b", "b.example": none})

	if code, stdout, stderr := inProcess(t, "check", file); code != exitOK || stdout != file+": ok, 2 sites with 1 included file\n" {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
}
