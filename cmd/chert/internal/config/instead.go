package config

import (
	"fmt"
	"slices"
	"strings"
)

// insteadOfKey returns the end of the message about an unknown key: what chert calls
// it or where it belongs, "" if nothing is known.
func (d *doc) insteadOfKey(key string) string {
	if tables := d.tablesWith(key); len(tables) > 0 {
		also := ""
		if key == "tls" { // Caddy has it in sites
			also = "; sites have tls_cert with tls_key, tls_self or tls_auto (docs/tls.md)"
		}
		return "; it is a key of " + list(tables) + also
	}
	if hint := Instead[plainWord(key)].Key; hint != "" {
		return "; " + hint
	}
	return ""
}

// withServerHints are the tables that configurations of other servers have the keys of.
var withServerHints = []string{topOfFile, topOfIncluded, "[defaults]", "[[site]]", "[[site.route]]", "[[redirect]]"}

// insteadIn is insteadOfKey for the keys of one kind of table.
func insteadIn(table, key string) string {
	switch {
	case strings.HasPrefix(table, "[upstream.") && strings.Count(table, ".") == 1:
		return insteadInUpstream[plainWord(key)]
	case table == "[[site]]" || table == "[[site.route]]":
		return insteadInSite[plainWord(key)]
	case strings.HasSuffix(table, ".limits]"):
		return insteadInLimits[plainWord(key)]
	}
	return ""
}

// InsteadOfFlag suggests a replacement for a flag of other servers that chert
// does not have, "" if there is none.
func InsteadOfFlag(name string) string { return Instead[plainWord(name)].Flag }

// plainWord is how Instead writes a word.
func plainWord(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }

// topOfFile is the place of the server's keys: TOML counts those that follow
// [[site]] among the site's.
const topOfFile = "the file"

// topOfIncluded is the place of the keys of an included file.
const topOfIncluded = "an included file"

// tablesWith returns the tables that have a key, in the order of the documentation.
func (d *doc) tablesWith(key string) (tables []string) {
	for _, name := range allTables {
		if slices.Contains(d.keysOfTables()[name], key) {
			if name == topOfFile {
				name = "the file itself, before its first table"
			}
			tables = append(tables, name)
		}
	}
	return tables
}

var allTables = []string{
	topOfFile, "[[listen]]", "[log]", "[errors]", "[rate_limit]", "[cluster]", "[defaults]", "[[site]]",
	"[[site.route]]",
	"[upstream.NAME]", "[upstream.NAME.check]", "[upstream.NAME.health]",
	"[site.basic_auth]", "[site.jwt]", "[site.forward_auth]",
	"[site.errors]", "[site.log]", "[defaults.limits]", "[site.limits]",
	"[[redirect]]", "[[defaults.rules]]", "[[site.rules]]", "[[site.response_headers]]", "[[site.rewrite]]",
}

// withAllTables is a file that has each of allTables.
const withAllTables = "[[listen]]\n[log]\n[errors]\n[rate_limit]\n[cluster]\n[defaults]\n[defaults.limits]\n" +
	"[upstream.NAME]\n[upstream.NAME.check]\n[upstream.NAME.health]\n" +
	"[[defaults.rules]]\n[[site]]\n[site.basic_auth]\n[site.jwt]\n[site.forward_auth]\n" +
	"[site.errors]\n[site.log]\n" +
	"[site.limits]\n[[site.rules]]\n[[site.response_headers]]\n[[site.rewrite]]\n" +
	"[[site.route]]\n[[redirect]]\n"

// noChecks accepts everything.
var noChecks = Checks{
	Listen: func([]string, string) error { return nil },
	Log:    noCheck, Folder: noCheck, Certificate: noCheckOfTwo, ClientCA: noCheck,
	RateStore: noCheck, RateFailure: noCheck,
}

func noCheck(string) error              { return nil }
func noCheckOfTwo(string, string) error { return nil }

// keysOfTables returns the keys of each table: those that are read from a file that
// has all of them.
func (d *doc) keysOfTables() map[string][]string {
	if d.tables == nil {
		all := &doc{known: make(map[string][]string)}
		all.load([]byte(withAllTables), noChecks)
		d.tables = all.known
	}
	return d.tables
}

// list joins words: "a, b or c".
func list(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return fmt.Sprintf("%s or %s", strings.Join(words[:last], ", "), words[last])
}
