package rival

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/child"
)

// caddyConf: HTTP/1 without encryption, nothing that answers on another port, and no log of requests, which is Caddy's
// default.
const caddyConf = `{
	admin off
	auto_https off
	persist_config off
	log {
		level ERROR
	}
	servers {
		protocols h1
	}
}
http://ADDR {
	root * FILES
	file_server
}
`

func caddy(p place) (child.Command, error) {
	conf := filepath.Join(p.dir, "Caddyfile")
	text := strings.NewReplacer("ADDR", p.addr, "FILES", p.files).Replace(caddyConf)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return child.Command{}, err
	}
	return child.Command{
		Args: []string{p.binary, "run", "--adapter", "caddyfile", "--config", conf},
		// What it would keep in the user's home.
		Env: []string{"GOMAXPROCS=" + strconv.Itoa(p.cores), "XDG_DATA_HOME=" + p.dir, "XDG_CONFIG_HOME=" + p.dir},
	}, nil
}
