package rival

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/child"
)

// caddyConf: nothing that answers on another port, and no log of requests, which is Caddy's default. Clients of an
// address send no name by which Caddy could choose a certificate: they get that of the lab.
const caddyConf = `{
	admin off
	auto_https off
	default_sni localhost
	persist_config off
	log {
		level ERROR
	}
	servers ADDR {
		protocols h1
	}
}
http://ADDR {
	SITE
}
`

// caddyTLS is the second address, with Caddy's default versions: HTTP/1, HTTP/2 and, over UDP, HTTP/3.
const caddyTLS = `https://ADDR {
	bind HOST
	tls DIR/cert.pem DIR/key.pem
	SITE
}
`

const (
	caddyFiles = `root * FILES
	file_server`
	caddyAnswers = `@post path_regexp post ^/users/([^/]+)/posts/([^/]+)$
	header Content-Type text/plain
	respond / "Hello, World!"
	respond @post "user {re.post.1} post {re.post.2}"`
)

// caddy has HTTP/1 without encryption and, if there is a second address, all versions of HTTP there.
func caddy(p place) (child.Command, error) {
	text := caddyConf
	if p.tls != "" {
		if err := writeCertificate(p.dir); err != nil {
			return child.Command{}, err
		}
		host, _, err := net.SplitHostPort(p.tls)
		if err != nil {
			return child.Command{}, err
		}
		text += strings.NewReplacer("ADDR", p.tls, "HOST", host, "DIR", p.dir).Replace(caddyTLS)
	}
	site := caddyAnswers
	if p.files != "" {
		site = caddyFiles
	}
	conf := filepath.Join(p.dir, "Caddyfile")
	text = strings.NewReplacer("ADDR", p.addr, "SITE", strings.ReplaceAll(site, "FILES", p.files)).Replace(text)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return child.Command{}, err
	}
	return child.Command{
		Args: []string{p.binary, "run", "--adapter", "caddyfile", "--config", conf},
		// What it would keep in the user's home.
		Env: []string{"GOMAXPROCS=" + strconv.Itoa(p.cores), "XDG_DATA_HOME=" + p.dir, "XDG_CONFIG_HOME=" + p.dir},
	}, nil
}
