package rival

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/child"
)

// A site with nothing but files, and one whose requests pass what a site can have in their way.
const (
	siteConf = `listen = "ADDR"

[[site]]
hosts = ["*"]
root = "FILES"
`
	fullSiteConf = `listen = "ADDR"

[rate_limit]
limit = "10000000/s burst 10000000"

[[site]]
hosts = ["*"]
root = "FILES"
allow = ["127.0.0.0/8", "10.0.0.0/8", "192.0.2.0/24"]
deny = ["192.0.2.66"]
headers = { X-Frame-Options = "DENY", Referrer-Policy = "no-referrer" }

[[site.rules]]
match = "*.css"
headers = { Cache-Control = "public, max-age=60" }

[[site.route]]
path = "/healthz"
respond = 200

[[site.route]]
path = "/old/{name}"
redirect = "/{name}"
`
)

// site is "chert serve" with a configuration.
func site(name, conf string) Spec {
	return Spec{Name: name, Does: Sites, Chert: true, source: "../cmd/chert", command: func(p place) (child.Command, error) {
		file := filepath.Join(p.dir, "chert.toml")
		text := strings.NewReplacer("ADDR", p.addr, "FILES", p.files).Replace(conf)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return child.Command{}, err
		}
		return child.Command{Args: []string{p.binary, "serve", "--config", file},
			Env: []string{"GOMAXPROCS=" + strconv.Itoa(p.cores)}}, nil
	}}
}
