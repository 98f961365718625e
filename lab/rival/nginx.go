package rival

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/child"
)

// nginxConf: nothing logged, connections never closed for their number of requests or their idleness. All paths are in
// the server's own folder, so that it also runs for users without write access to nginx's. SITE is one of those below.
const nginxConf = `USERworker_processes CORES;
worker_rlimit_nofile OPEN;
daemon off;
pid DIR/pid;
error_log DIR/error.log;
events {
	worker_connections CONNECTIONS;
}
http {
	access_log off;
	keepalive_requests 100000000;
	keepalive_timeout 1h;
	client_body_temp_path DIR/body;
	proxy_temp_path DIR/proxy;
	fastcgi_temp_path DIR/fastcgi;
	uwsgi_temp_path DIR/uwsgi;
	scgi_temp_path DIR/scgi;
SITE}
`

// nginxTLS is the second address.
const nginxTLS = `		listen SECOND ssl http2 backlog=4096;
		ssl_protocols TLSv1.2 TLSv1.3;
		ssl_certificate DIR/cert.pem;
		ssl_certificate_key DIR/key.pem;
`

const nginxAnswers = `	default_type text/plain;
	server {
		listen ADDR backlog=4096;
TLS		location = / {
			return 200 "Hello, World!";
		}
		location ~ ^/users/([^/]+)/posts/([^/]+)$ {
			return 200 "user $1 post $2";
		}
	}
`

// nginxFiles: the state of an open file is checked again after a second, as chert does.
const nginxFiles = `	sendfile on;
	tcp_nopush on;
	tcp_nodelay on;
	etag on;
	open_file_cache max=1000 inactive=60s;
	open_file_cache_valid 1s;
	open_file_cache_min_uses 1;
	default_type application/octet-stream;
	types {
		text/html html;
		text/css css;
		text/javascript js;
		application/json json;
		font/woff2 woff2;
		image/jpeg jpg;
		image/png png;
		image/svg+xml svg;
	}
	server {
		listen ADDR backlog=4096;
TLS		root FILES;
	}
`

// nginxCached is how many files it keeps open: what nginxFiles says.
const nginxCached = 1000

func nginx(p place) (child.Command, error) { return nginxWith(p, nginxFiles) }

// nginxNopush is without tcp_nopush: what nginx does by default.
func nginxNopush(p place) (child.Command, error) {
	return nginxWith(p, strings.Replace(nginxFiles, "tcp_nopush on", "tcp_nopush off", 1))
}

func nginxWith(p place, files string) (child.Command, error) {
	site, open := nginxAnswers, p.connections+spare
	if p.files != "" {
		site, open = files, open+p.connections+nginxCached
	}
	return nginxSite(p, site, open)
}

// nginxSite is nginx with one of the sites above, that may open so many files.
func nginxSite(p place, site string, open int) (child.Command, error) {
	user := "" // nginx warns of the directive when it is not root
	if os.Getuid() == 0 {
		user = "user root;\n"
	}
	secure := ""
	if p.tls != "" {
		if err := writeCertificate(p.dir); err != nil {
			return child.Command{}, err
		}
		secure = strings.ReplaceAll(nginxTLS, "SECOND", p.tls)
	}
	conf := filepath.Join(p.dir, "nginx.conf")
	text := strings.Replace(nginxConf, "SITE", strings.ReplaceAll(site, "TLS", secure), 1)
	text = strings.NewReplacer("USER", user, "DIR", p.dir, "ADDR", p.addr, "CORES", strconv.Itoa(p.cores), "FILES", p.files,
		"OPEN", strconv.Itoa(open), "CONNECTIONS", strconv.Itoa(max(p.connections+spare, open))).Replace(text)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return child.Command{}, err
	}
	// -e: before it has read the file, nginx would open the log it was built with.
	return child.Command{Args: []string{"nginx", "-p", p.dir, "-e", filepath.Join(p.dir, errorLog), "-c", conf}}, nil
}
