package adapt

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Files are where they are included, and notes have their names and lines.
func TestInclude(t *testing.T) {
	t.Parallel()
	const nobody = "deny = [\"all\"]\n"
	const site = "\n[[site]]\nhosts = [\"a.example\"]\nroot = \"/w\"\n"
	// lines that are long: 16 files with one are more than 4 MiB
	long := "# " + strings.Repeat("x", MaxSize/4) + "\n"
	files := map[string]string{
		"hosts": "server {\n listen 80;\n server_name a.example;\n include root;\n}\n", "root": "root /w;", "none": "",
		"guard": "deny all;\nmagic on;\n", "broken": "a b;\n c }", "open": "server {",
		"itself": "include itself;", "other": "include another;", "another": "include other;",
		"twice": "include none; include twice2; include twice2;", "twice2": strings.Repeat("include long; ", 9), "long": long,
	}
	for i := range 40 {
		files[fmt.Sprint("deep", i)] = fmt.Sprint("include deep", i+1, ";")
	}
	source := func(name string) (all []File, err error) {
		for one := range strings.SplitSeq(name, "*") {
			text, ok := files[one]
			if !ok {
				return nil, errors.New("there is no " + one)
			}
			all = append(all, File{one, text})
		}
		return all, nil
	}
	server := func(s string) string { return "server { listen 80; server_name a.example; " + s + " }" }
	for _, tt := range []struct{ in, out, note string }{
		{"http {\n include hosts;\n}", site, ""},
		{server("include root*none;"), site, ""},
		{server("root /w;\ninclude mime.types;"), site, ""}, // chert has them
		{server("root /w;\ninclude guard;"), site + "deny = [\"all\"]\n", "guard:2: magic is left out"},
		{server("include guard;\nroot /w; some thing;"), site + "deny = [\"all\"]\n", "guard:2: magic is left out"},
		{server("include guard;\nroot /w; some thing;"), site + "deny = [\"all\"]\n", ":2: some is left out"},
		{server("root /w; location /b/ { include guard; }"), site + "[[site.route]]\npath = \"/b/{path...}\"\n" + "respond = 403\ndeny = [\"all\"]\n", "guard:2: magic is left out"},
		{server("root /w;\ninclude gone;"), site + nobody, ":2: include gone is left out: there is no gone"},
		{server("root /w; location /b/ { include gone; }"), site + "[[site.route]]\npath = \"/b/{path...}\"\n" + nobody + "root = \"/w/b\"\n", ":1: include may say who may have it, so nobody may"},
		{server("root /w; location /b/ { allow all; }\ninclude gone;"), site + nobody + "[[site.route]]\npath = \"/b/{path...}\"\nroot = \"/w/b\"\n", ":2: include gone is left out"},
		{server("root /w; location ~ \\.sql$ { include gone; }"), site + "hidden = [\"*.sql\"]\n", ":1: include gone is left out"},
		{server("root /w; include gone/proxy_params;"), site, ":1: include gone/proxy_params is left out"},
		{server("root /w;") + " include gone;", site + nobody, ":1: include may say who may have it, so nobody may"},
		{"http { include gone; " + server("root /w; location /b/ { allow all; }") + "}", site + nobody + "[[site.route]]\npath = \"/b/{path...}\"\nroot = \"/w/b\"\n",
			":1: include gone is left out: there is no gone"},
		{"http { include gone/mime.types; include gone/fastcgi_params; " + server("root /w;") + "}", site, "fastcgi_params is left out"},
		{"include gone; http { " + server("root /w;") + "}", site, ":1: include gone is left out"}, // beside http are modules
		{server("include gone; return 301 https://b.example$request_uri;"), "\n[[redirect]]\nhosts = [\"a.example\"]\nto = \"https://b.example{uri}\"\nstatus = 301\n",
			":1: include may say who may have it; the redirect is for all"},
		{server("root /w; include itself;"), site, "itself:1: include itself is left out: it is in itself"},
		{server("root /w; include other;"), site, "another:1: include other is left out: it is in itself"},
		{server("root /w; include deep0;"), site + nobody, "deep31:1: include deep32 is left out: files are more than 32 deep"},
		{server("root /w; include twice;"), site + nobody, "twice2:1: include long is left out: the files are longer than 4 MiB"},
		{server("include broken;"), "", `broken:2: a } without a {`},
		{server("\ninclude open;"), "", "open:1: a { has no }"},
	} {
		out, notes, err := NginxFiles(tt.in, source)
		var wrong Note
		if errors.As(err, &wrong) {
			notes = []Note{wrong}
		}
		said := ""
		for _, n := range notes {
			said += fmt.Sprintf("%s:%d: %s\n", n.File, n.Line, n.Text)
		}
		want := tt.out
		if want != "" {
			want = "listen = [\":80\"]\n" + want
		}
		if tt.note == "" && said != "" || !strings.Contains(said, tt.note) || out != want {
			t.Errorf("%s:\n%s\nsaid %s\nwant\n%s\nand %s", tt.in, out, said, want, tt.note)
		}
	}
}

// Where a Caddyfile imports a file in a block, what is in that is not taken for something else, nor left open.
func TestImportInBlock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, out string }{
		{"header {\n import gone\n }", ""},
		{"header {\n X y\n import gone\n }", "[[site.response_headers]]\nset = { \"X\" = \"y\" }\n"},
		{"file_server {\n import gone\n }", "deny = [\"all\"]\n"},
		{"basic_auth {\n a b\n import gone\n }", "[site.basic_auth]\nusers = { \"a\" = \"b\" }\n"},
	} {
		out, notes, err := Caddy("http://a.example {\n root * /w\n file_server\n " + tt.in + "\n}\n")
		if err != nil || len(notes) == 0 || !strings.HasPrefix(notes[0].Text, "import is left out") {
			t.Errorf("%s: %v, %v", tt.in, notes, err)
		}
		const site = "listen = [\":80\"]\n\n[[site]]\nhosts = [\"a.example\"]\nroot = \"/w\"\n"
		if want := site + tt.out; out != want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.in, out, want)
		}
	}
}
