package rival

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/chert-http/chert/lab/child"
)

// nginxConf: one worker, nothing logged, connections never closed for their number of requests. All paths are in the
// server's own folder, so that it also runs for users who may not write to nginx's.
const nginxConf = `USERworker_processes 1;
worker_rlimit_nofile 65536;
daemon off;
pid DIR/pid;
error_log DIR/error.log;
events {
	worker_connections 16384;
}
http {
	access_log off;
	default_type text/plain;
	keepalive_requests 100000000;
	client_body_temp_path DIR/body;
	proxy_temp_path DIR/proxy;
	fastcgi_temp_path DIR/fastcgi;
	uwsgi_temp_path DIR/uwsgi;
	scgi_temp_path DIR/scgi;
	server {
		listen ADDR backlog=4096;
		location / {
			return 200 "Hello, World!";
		}
	}
}
`

func nginx(dir, addr string) (child.Command, error) {
	user := "" // nginx warns of the directive when it is not root
	if os.Getuid() == 0 {
		user = "user root;\n"
	}
	conf := filepath.Join(dir, "nginx.conf")
	text := strings.NewReplacer("USER", user, "DIR", dir, "ADDR", addr).Replace(nginxConf)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return child.Command{}, err
	}
	// -e: before it has read the file, nginx would open the log it was built with.
	return child.Command{Args: []string{"nginx", "-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", conf}}, nil
}
