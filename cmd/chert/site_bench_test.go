package main

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/ratelimit"
)

// BenchmarkReload is what a reload does before it replaces the sites: it reads and checks
// the configuration of 1,000 sites, each in a file of its own, and opens their folders.
func BenchmarkReload(b *testing.B) {
	const count = 1000
	dir := b.TempDir()
	for i := range count {
		write(b, filepath.Join(dir, "www", fmt.Sprint(i), "index.html"), "x")
		write(b, filepath.Join(dir, "sites", fmt.Sprintf("%d.toml", i)), fmt.Sprintf("[[site]]\nhosts = ['%d.example', 'www.%d.example']\n"+
			"root = '../www/%d'\ndeny = '192.0.2.0/24'\nheaders = { X-A = 'b' }\n[[site.rules]]\nmatch = '*.css'\nheaders = { X-B = 'c' }\n"+
			"[[site.route]]\npath = '/old/{name}'\nredirect = '/new/{name}'\n[[site.route]]\npath = '/healthz'\nrespond = 200\n", i, i, i))
	}
	file := filepath.Join(dir, "chert.toml")
	write(b, file, "include = 'sites/*.toml'\n")
	for b.Loop() {
		cfg, err := config.Load(file, configChecks)
		if err != nil {
			b.Fatal(err)
		}
		all, err := buildSites(cfg, nil, limiter{store: ratelimit.NewMemory(nil)}, nil, nil, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			b.Fatal(err)
		}
		if len(all.files) != count {
			b.Fatal(len(all.files))
		}
		all.close()
	}
}
