package config

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Hints are for words that are no key, name only what there is, and say it if there is
// nothing.
func TestKeyHints(t *testing.T) {
	t.Parallel()
	var d doc
	tables := d.keysOfTables()
	if got := slices.Sorted(maps.Keys(tables)); !slices.Equal(got, slices.Sorted(slices.Values(allTables))) {
		t.Errorf("the tables are %q", got)
	}
	words := 0
	for _, h := range hints {
		words += len(strings.Fields(h.words))
	}
	if words != len(Instead) {
		t.Errorf("%d words for %d hints: one is there twice", words, len(Instead))
	}
	keys := slices.Concat(slices.Collect(maps.Values(tables))...)
	var (
		inCode  = regexp.MustCompile(`\b[a-z]+(?:_[a-z]+)+\b|\b[a-z]+ =`)
		table   = regexp.MustCompile(`\[+[a-z._]+\]+`)
		file    = regexp.MustCompile(`docs/[a-z.]+\b`)
		wants   = regexp.MustCompile(`want ([a-z_0-9]+)`)
		nothing = regexp.MustCompile(`\b(no|not|cannot|never|GOMAXPROCS)\b`)
	)
	for word, hint := range Instead {
		if word != plainWord(word) {
			t.Errorf("%s is never found", word)
		}
		for _, text := range []string{hint.Flag, hint.Key} {
			for _, page := range file.FindAllString(text, -1) {
				if _, err := os.Stat(filepath.Join("../../../..", page)); err != nil {
					t.Errorf("%s: %v", word, err)
				}
			}
			for _, pkg := range []string{"middleware/basicauth", "middleware/jwt"} {
				if _, err := os.Stat(filepath.Join("../../../..", pkg)); strings.Contains(text, pkg) && err != nil {
					t.Errorf("%s: %v", word, err)
				}
			}
		}
		if hint.Key == "" {
			continue
		}
		if slices.Contains(keys, word) || slices.Contains(keys, strings.ReplaceAll(word, "_", "-")) {
			t.Errorf("%s is a key: %s", word, hint.Key)
		}
		named := table.FindAllString(hint.Key, -1)
		for _, name := range named {
			if name != "[[redirect]]" && name != "[[site]]" && tables[name] == nil {
				t.Errorf("%s: there is no table %s: %s", word, name, hint.Key)
			}
		}
		for _, m := range wants.FindAllStringSubmatch(hint.Key, -1) {
			named = append(named, m[1])
			if !slices.Contains(keys, m[1]) {
				t.Errorf("%s: there is no key %s: %s", word, m[1], hint.Key)
			}
		}
		for _, key := range inCode.FindAllString(hint.Key, -1) {
			key = strings.TrimSuffix(key, " =")
			named = append(named, key)
			if !slices.Contains(keys, key) {
				t.Errorf("%s: there is no key %s: %s", word, key, hint.Key)
			}
		}
		if len(named) == 0 && !file.MatchString(hint.Key) && !nothing.MatchString(hint.Key) {
			t.Errorf("%s: it neither names what there is nor says that there is nothing: %s", word, hint.Key)
		}
	}
}

// What users of nginx and Caddy write first has a hint.
func TestKnownWords(t *testing.T) {
	t.Parallel()
	for _, key := range strings.Fields(`proxy_pass reverse_proxy auth basic_auth try_files log_file access_log error_page headers add_header deny allow
		alias location server_name autoindex browse encode gzip redir return rewrite file_server tls ssl_certificate upstream worker_processes
		client_max_body_size keepalive_timeout include import`) {
		if new(doc).insteadOfKey(key) == "" {
			t.Errorf("the key %s has no hint", key)
		}
	}
	for _, flag := range strings.Fields("proxy auth root port domain browse headers gzip user password dir workers timeout") {
		if InsteadOfFlag(flag) == "" {
			t.Errorf("the flag --%s has no hint", flag)
		}
	}
}

// Hints for single tables name keys and tables that there are, for words that are no keys of theirs.
func TestHintsOfTables(t *testing.T) {
	t.Parallel()
	var d doc
	tables := d.keysOfTables()
	wants := regexp.MustCompile(`want ([a-z_]+)`)
	for _, tt := range []struct {
		table string
		hints map[string]string
	}{{"[upstream.NAME]", insteadInUpstream}, {"[[site.route]]", insteadInSite}, {"[site.limits]", insteadInLimits}} {
		for word, hint := range tt.hints {
			if slices.Contains(tables[tt.table], word) {
				t.Errorf("%s is a key of %s", word, tt.table)
			}
			if m := wants.FindStringSubmatch(hint); m != nil && !slices.Contains(tables[tt.table], m[1]) {
				t.Errorf("%s: %s has no %s", word, tt.table, m[1])
			}
		}
	}
}
