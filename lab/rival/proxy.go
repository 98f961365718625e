package rival

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/measure"
)

// This file is reverse proxies. Behind each is an origin of its own, an nginx, on the cores that the proxy does not have.
// All keep connections to it, and send X-Forwarded-For, -Host and -Proto and X-Real-IP.

// originConf has what a site of nginx.go has, without the choice. "/" is the usual answer to any method, and /upload the
// same when it has the whole body: nginx reads that before it asks another server, here itself.
const originConf = `	default_type text/plain;
	client_max_body_size 1g;
	server {
		listen ADDR backlog=4096;
		location = / {
			return 200 "Hello, World!";
		}
		location = /upload {
			client_body_buffer_size 16m;
			proxy_pass http://ADDR/;
			proxy_pass_request_body off;
			proxy_method GET;
			proxy_set_header Content-Length "";
		}
		location / {
			FILES
			open_file_cache max=1000 inactive=60s;
		}
	}
`

const nginxProxyConf = `	upstream origin {
		server ORIGIN;
		keepalive CONNECTIONS;
		keepalive_requests 100000000;
		keepalive_timeout 1h;
	}
	client_max_body_size 1g;
	server {
		listen ADDR backlog=4096;
TLS		location / {
			proxy_pass http://origin;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $host;
			proxy_set_header X-Real-IP $remote_addr;
			proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
			proxy_set_header X-Forwarded-Host $host;
			proxy_set_header X-Forwarded-Proto $scheme;
			BUFFERING
		}
	}
`

const haproxyConf = `global
	nbthread CORES
	maxconn OPEN
	ssl-default-bind-options ssl-min-ver TLSv1.2
	tune.http.maxhdr 128
defaults
	mode http
	timeout connect 3s
	timeout client 1h
	timeout server 1h
	timeout http-keep-alive 1h
	http-reuse always
	maxconn OPEN
frontend front
	bind ADDR backlog 4096
	SECURE
	option forwardfor
	http-request set-header X-Real-IP %[src]
	http-request set-header X-Forwarded-Host %[req.hdr(host)]
	http-request set-header X-Forwarded-Proto http if !{ ssl_fc }
	http-request set-header X-Forwarded-Proto https if { ssl_fc }
	default_backend origin
backend origin
	server one ORIGIN pool-max-conn -1
`

func nginxProxy(p place) (child.Command, error) {
	site := strings.NewReplacer("ORIGIN", p.origin, "BUFFERING", "").Replace(nginxProxyConf)
	return nginxSite(p, site, 2*(p.connections+spare))
}

// origin is the command of the server behind a proxy.
func origin(p place) (child.Command, error) {
	files := "return 404;"
	if p.files != "" {
		files = "root " + p.files + ";"
	}
	return nginxSite(p, strings.Replace(originConf, "FILES", files, 1), 2*(p.connections+spare)+nginxCached)
}

func haproxy(p place) (child.Command, error) {
	secure := ""
	if p.tls != "" {
		if err := writeCertificate(p.dir); err != nil {
			return child.Command{}, err
		}
		var both []byte
		for _, name := range []string{"cert.pem", "key.pem"} {
			b, err := os.ReadFile(filepath.Join(p.dir, name))
			if err != nil {
				return child.Command{}, err
			}
			both = append(both, b...)
		}
		file := filepath.Join(p.dir, "both.pem")
		if err := os.WriteFile(file, both, 0o600); err != nil {
			return child.Command{}, err
		}
		secure = "bind " + p.tls + " ssl crt " + file + " alpn h2,http/1.1 backlog 4096"
	}
	// It closes idle connections to servers beyond a fifth of its descriptors.
	open := min(10*(p.connections+spare), 9000)
	text := strings.NewReplacer("ADDR", p.addr, "CORES", strconv.Itoa(p.cores), "SECURE", secure, "ORIGIN", p.origin,
		"OPEN", strconv.Itoa(open)).Replace(haproxyConf)
	conf := filepath.Join(p.dir, "haproxy.cfg")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return child.Command{}, err
	}
	return child.Command{Args: []string{"haproxy", "-db", "-f", conf}}, nil
}

// proxyServer is a proxy written in Go.
func proxyServer(name string) Spec {
	spec := goServer(name, Proxy|H2)
	started := spec.command
	spec.command = func(p place) (child.Command, error) {
		c, err := started(p)
		c.Args = append(c.Args, "--origin", p.origin, "--keep", strconv.Itoa(p.connections+spare))
		return c, err
	}
	return spec
}

func chertProxy(name string) Spec {
	spec := proxyServer(name)
	spec.Chert = true
	return spec
}

// Origin is the address of the server behind a proxy.
func (s *Server) Origin() string { return s.origin }

// startOrigin starts the server behind a proxy, unless the room has one.
func (s *Server) startOrigin(ctx context.Context, room Room) error {
	if s.origin = room.Origin; s.origin != "" {
		return nil
	}
	dir := filepath.Join(s.dir, "origin")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	addr, release, err := freeport.Reserve("127.0.0.1")
	if err != nil {
		return err
	}
	s.reserved = append(s.reserved, release)
	command, err := origin(place{dir: dir, addr: addr, cores: 1, connections: room.Connections, files: room.Files})
	if err != nil {
		return err
	}
	if command.Cores, err = others(room.Cores); err != nil {
		return err
	}
	if s.behind, err = child.Start(ctx, command); err != nil {
		return err
	}
	s.origin = addr
	return awaitAnswer(ctx, addr, false, s.behind)
}

// others returns the cores that a server does not have; all, if there are no others.
func others(cores []int) ([]int, error) {
	allowed, err := measure.Allowed()
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(slices.Clone(allowed), func(c int) bool { return slices.Contains(cores, c) })
	if len(left) == 0 {
		return allowed, nil
	}
	return left, nil
}
