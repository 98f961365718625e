package sites

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// leftOut are what chert adapt cannot translate, by site.
var leftOut = map[string]string{
	"maintenance": "add_header of an internal location", // so Retry-After is missing
	"auth":        "auth_request says who may have it",  // so nobody may
}

// What chert adapt makes of the configurations of nginx is answered as they are.
func TestAdapt(t *testing.T) {
	t.Parallel()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range sites {
		t.Run(site.name, func(t *testing.T) {
			t.Parallel()
			s, dir := fresh(t, site.name)
			cmd := exec.Command(binary, "adapt", filepath.Join(dir, "nginx.conf"))
			var said bytes.Buffer
			cmd.Stderr = &said
			text, err := cmd.Output()
			missing := leftOut[site.name]
			if (err != nil) != (missing != "") || !strings.Contains(said.String(), missing) {
				t.Fatalf("%v: %s", err, said.String())
			}
			file := filepath.Join(dir, "adapted.toml")
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
			s.start(t, exec.Command(binary, "serve", "--config", file))
			for _, r := range site.requests {
				switch site.name {
				case "maintenance":
					r.want = ""
				case "auth":
					if got := r.send(t, s); got.StatusCode == 200 && r.target != "/healthz" {
						t.Errorf("%s: %d", r.target, got.StatusCode)
					}
					continue
				}
				r.check(t, "adapted", r.send(t, s), s)
			}
			if t.Failed() {
				t.Logf("%s", text)
			}
		})
	}
}
