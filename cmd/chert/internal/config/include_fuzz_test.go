package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever two files have, each mistake is a line with a position within its own file.
func FuzzFiles(f *testing.F) {
	f.Add("include = ['a.toml']\n"+good, good)
	f.Add("include = ['*', 'b', '']\n[[listen]]\naddress = ':80'\ntls = false\nprotocols = ['h2']\n", "listen = [1, {a = 2}]\nhosts = ")
	f.Add("include = 'a.toml'\nlisten = [':80', {address = ':81', protocols = ['h1', 'h2']}]\n", "[[redirect]]\nhosts = '*'\nto = '${A}'\n")
	f.Add("\xef\xbb\xbfinclude = 'a.toml'", "\xff\xfe")
	dir := f.TempDir() // each process of the fuzzer runs one input after the other
	if err := os.Mkdir(filepath.Join(dir, "www"), 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, main, included string) {
		if strings.Contains(main, "..") || strings.Contains(main, "/") || strings.Contains(main, `\`) {
			return // other folders
		}
		texts := map[string]string{"c.toml": main, "a.toml": included}
		for name, text := range texts {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Load(filepath.Join(dir, "c.toml"), ofRates(checks))
		ps, ok := errors.AsType[Problems](err)
		if err != nil && (!ok || len(ps) == 0) {
			t.Fatalf("%v", err)
		}
		for _, p := range ps {
			text, ok := texts[filepath.Base(p.File)]
			lines := strings.Split(text, "\n")
			if !ok || strings.Contains(p.Error(), "\n") || p.At.Line > len(lines) || p.At.Line > 0 && p.At.Column < 1 {
				t.Errorf("%q %q: %q", main, included, p.Error())
			}
		}
	})
}
