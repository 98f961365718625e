package rival

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/child"
)

// nginxConf: nothing logged, connections never closed for their number of requests or their idleness. All paths are in
// the server's own folder, so that it also runs for users who may not write to nginx's.
const nginxConf = `USERworker_processes CORES;
worker_rlimit_nofile FILES;
daemon off;
pid DIR/pid;
error_log DIR/error.log;
events {
	worker_connections CONNECTIONS;
}
http {
	access_log off;
	default_type text/plain;
	keepalive_requests 100000000;
	keepalive_timeout 1h;
	client_body_temp_path DIR/body;
	proxy_temp_path DIR/proxy;
	fastcgi_temp_path DIR/fastcgi;
	uwsgi_temp_path DIR/uwsgi;
	scgi_temp_path DIR/scgi;
	server {
		listen ADDR backlog=4096;
		location = / {
			return 200 "Hello, World!";
		}
		location ~ ^/users/([^/]+)/posts/([^/]+)$ {
			return 200 "user $1 post $2";
		}
	}
}
`

func nginx(p place) (child.Command, error) {
	user := "" // nginx warns of the directive when it is not root
	if os.Getuid() == 0 {
		user = "user root;\n"
	}
	conf := filepath.Join(p.dir, "nginx.conf")
	text := strings.NewReplacer("USER", user, "DIR", p.dir, "ADDR", p.addr, "CORES", strconv.Itoa(p.cores),
		"FILES", strconv.Itoa(p.connections+spare), "CONNECTIONS", strconv.Itoa(p.connections+spare)).Replace(nginxConf)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return child.Command{}, err
	}
	// -e: before it has read the file, nginx would open the log it was built with.
	return child.Command{Args: []string{"nginx", "-p", p.dir, "-e", filepath.Join(p.dir, errorLog), "-c", conf}}, nil
}
