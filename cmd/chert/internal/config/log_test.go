package config

import (
	"strings"
	"testing"
)

func TestLogProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"format", "log = { format = 'xml' }\n" + good, "1:18: format: want another"},
		{"unknown key", "[log]\nfil = 'x'\n" + good, `2:1: unknown key "fil" in [log]; did you mean "file"?`},
		{"no folder", "log = { file = 'gone/x.log' }\n" + good, `1:16: file: "DIR/gone/x.log": there is no such folder`},
		{"a folder", "log = { file = '.' }\n" + good, `1:16: file: "DIR": this is not a regular file`},
		{"served", good + "log = { file = 'www/x.log' }\n", `4:16: the log "DIR/www/x.log" is in the folder "DIR/www", which is served`},
		{"field", "log = { format = 'json', fields = ['path', 'cookie'] }\n" + good, `1:44: fields: there is no field "cookie" in the log`},
		{"field twice", "log = { format = 'json', fields = ['path', 'path'] }\n" + good, "1:44: fields: path is there twice"},
		{"no fields", "log = { format = 'json', fields = [] }\n" + good, `1:26: fields is empty`},
		{"fields of combined", "log = { fields = ['path'] }\n" + good, "1:9: fields are those of the formats text and json, and this log is combined"},
		{"skip", "log = { skip = ['[a'] }\n" + good, `1:17: skip: "[a" is not a valid pattern`},
		{"sample", "log = { sample = 0 }\n" + good, "1:18: sample wants a number from 1 to 1048576"},
		{"ids off", "log = { request_id = true }\n" + good + "log = { request_id = false }\n", "5:22: request_id is true for the whole file"},
		{"in a site", good + "log = 1\n", "4:7: log wants a format or a table, not a number"},
	} {
		got := problemsOf(t, tt.text)
		if len(got) != 1 || !strings.HasPrefix(got[0], tt.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

// What a table does not have is as outside.
func TestLogInherits(t *testing.T) {
	t.Parallel()
	_, cfg, err := load(t, "log = { file = 'x.log', format = 'json', fields = 'path', sample = 3 }\n"+good+
		"log = { skip = '*.css' }\n[[site.route]]\npath = '/a'\nrespond = 200\nlog = 'common'\n[[site.route]]\npath = '/b'\nrespond = 200\n")
	if err != nil {
		t.Fatal(err)
	}
	site := cfg.Sites[0]
	if l := site.Log; l == nil || l.Format != "json" || l.Sample != 3 || l.File != cfg.Log.File || len(l.Skip) != 1 {
		t.Errorf("%+v", l)
	}
	if l := site.Routes[0].Log; l == nil || l.Format != "common" || len(l.Skip) != 1 || site.Routes[1].Log != site.Log {
		t.Errorf("%+v", l)
	}
}
