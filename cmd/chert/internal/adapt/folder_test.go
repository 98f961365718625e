package adapt

import (
	"strings"
	"testing"
)

// What is missing below a location for files of a folder is not answered as try_files of others says: it is a route of
// its own. One with a regular expression cannot be, which a note says. Fields of single files in it are theirs.
func TestTriedElsewhere(t *testing.T) {
	t.Parallel()
	const (
		begin  = "listen = [\":80\"]\n\n[[site]]\nhosts = [\"a.example\"]\n"
		site   = begin + "root = \"/w\"\n"
		spa    = "try = [\"{path}\", \"/i\"]\n"
		whole  = "[[site.route]]\npath = \"/{path...}\"\n" + spa + "root = \"/w\"\n"
		assets = "[[site.route]]\npath = \"/x/{path...}\"\n"
		age    = "headers = { \"Cache-Control\" = \"max-age=1\" }\n"
		long   = "headers = { \"Cache-Control\" = \"max-age=2\" }\n"
		image  = "rules]]\nmatch = [\"*.png\"]\n" + long
	)
	for _, tt := range []struct{ in, out, note string }{
		{"location / { try_files $uri /i; } location /x/ { expires 1s; }", begin + whole + assets + "root = \"/w/x\"\n[[site.route.rules]]\nmatch = [\"**\"]\n" + age, ""},
		{"location ^~ /x/ { expires 1s; } try_files $uri /i;", site + spa + assets + "root = \"/w/x\"\ntry = []\n[[site.route.rules]]\nmatch = [\"**\"]\n" + age, ""},
		{"location / { try_files $uri /i; } location /x/ { expires 1s; } location ~ \\.png$ { expires 2s; }", begin + "[[site." + image + whole + assets + "root = \"/w/x\"\n" +
			"[[site.route.rules]]\nmatch = [\"**\"]\n" + age + "[[site.route." + image, "what is missing is answered as try_files of others says, where nginx has 404"},
		{"location / { try_files $uri /i; } location ^~ /x/ { expires 1s; } location ~ \\.png$ { expires 2s; }", begin + "[[site." + image + whole + assets + "root = \"/w/x\"\n" +
			"[[site.route.rules]]\nmatch = [\"**\"]\n" + age, "what is missing is answered as try_files of others says, where nginx has 404"},
		{"location / { try_files $uri /i; } location ^~ /x/ { expires 1s; } location = /x/a.js { expires 2s; } location = /y/b.js { expires 2s; }", begin + "[[site.rules]]\nmatch = [\"/x/a.js\"]\n" + long +
			"[[site.rules]]\nmatch = [\"/y/b.js\"]\n" + long + whole + assets + "root = \"/w/x\"\n[[site.route.rules]]\nmatch = [\"**\"]\n" + age + "[[site.route.rules]]\nmatch = [\"/a.js\"]\n" + long, ""},
		{"location / { try_files $uri /i; } location /x/ { expires 1s; } location ~ ^/x/[^/]*\\.png$ { expires 2s; }", begin + "[[site.rules]]\nmatch = [\"x/*.png\"]\n" + long + whole + assets + "root = \"/w/x\"\n" +
			"[[site.route.rules]]\nmatch = [\"**\"]\n" + age + "[[site.route.rules]]\nmatch = [\"/*.png\"]\n" + long, "what is missing is answered as try_files of others says, where nginx has 404"},
		{"location / { try_files $uri /i; } location ~ \\.sql$ { deny all; }", site + spa + "hidden = [\"*.sql\"]\n", "deny of files is left out: they are hidden"},
		{"location / { try_files $uri =404; } location /x/ { expires 1s; }", site + "[[site.rules]]\nmatch = [\"x/**\"]\n" + age, ""},
	} {
		out, notes, err := Nginx("server { listen 80; server_name a.example; root /w; " + tt.in + " }")
		said := ""
		for _, n := range notes {
			said += n.Text + "\n"
		}
		if err != nil || out != tt.out || tt.note == "" && said != "" || !strings.Contains(said, tt.note) {
			t.Errorf("%s:\n%s\nsaid %s, %v\nwant\n%s\nand %s", tt.in, out, said, err, tt.out, tt.note)
		}
		if all := problems(t, out); all != nil {
			t.Errorf("%s: %q", tt.in, all)
		}
	}
}
