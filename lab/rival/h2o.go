package rival

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/child"
)

// h2oConf: nothing logged, connections never closed for their idleness. "Hello, World!" is a file, which costs h2o less
// than its embedded Ruby; what depends on the path needs that. PATHS is one of those below.
const h2oConf = `USERnum-threads: CORES
max-connections: CONNECTIONS
http1-request-timeout: 3600
pid-file: DIR/pid
error-log: DIR/error.log
listen:
  host: HOST
  port: PORT
TLShosts:
  default:
    paths:
PATHS`

// h2oTLS is the second address.
const h2oTLS = `listen:
  host: HOST
  port: SECOND
  ssl:
    certificate-file: DIR/cert.pem
    key-file: DIR/key.pem
`

const h2oAnswers = `      "/users":
        mruby.handler: |
          Proc.new do |env|
            _, user, posts, post = env["PATH_INFO"].split("/")
            if posts == "posts" && post
              [200, {"content-type" => "text/plain"}, ["user #{user} post #{post}"]]
            else
              [404, {}, []]
            end
          end
      "/":
        file.file: DIR/hello.txt
`

const h2oFiles = `      "/":
        file.dir: FILES
`

func h2o(p place) (child.Command, error) {
	user := ""
	if os.Getuid() == 0 {
		user = "user: root\n" // else it switches to the user nobody, which may not read DIR
	}
	host, port, err := net.SplitHostPort(p.addr)
	if err != nil {
		return child.Command{}, err
	}
	secure := ""
	if p.tls != "" {
		if err := writeCertificate(p.dir); err != nil {
			return child.Command{}, err
		}
		_, port, err := net.SplitHostPort(p.tls)
		if err != nil {
			return child.Command{}, err
		}
		secure = strings.ReplaceAll(h2oTLS, "SECOND", port)
	}
	paths := h2oAnswers
	if p.files != "" {
		paths = h2oFiles
	}
	text := strings.NewReplacer("PATHS", paths, "TLS", secure).Replace(h2oConf)
	text = strings.NewReplacer("USER", user, "DIR", p.dir, "FILES", p.files, "HOST", host, "PORT", port, "CORES", strconv.Itoa(p.cores),
		"CONNECTIONS", strconv.Itoa(p.connections+spare)).Replace(text)
	conf := filepath.Join(p.dir, "h2o.conf")
	for path, content := range map[string]string{conf: text, filepath.Join(p.dir, "hello.txt"): "Hello, World!"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return child.Command{}, err
		}
	}
	return child.Command{Args: []string{"h2o", "-c", conf}}, nil
}
