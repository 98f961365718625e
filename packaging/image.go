package main

import (
	"bytes"
	"encoding/pem"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// image writes the folder that "docker build" makes the image from: the Dockerfile, for each processor the whole
// root of the image except for /var/lib/chert, and that.
func (p *product) image(dist string) error {
	if len(p.linux()) == 0 {
		return nil
	}
	dir := filepath.Join(dist, "image")
	dockerfile, err := p.text("packaging/Dockerfile")
	if err != nil {
		return err
	}
	if err := p.lay(dir, file{"Dockerfile", 0o644, dockerfile}); err != nil {
		return err
	}
	for _, b := range p.linux() {
		program, err := b.file("usr/bin/chert")
		if err != nil {
			return err
		}
		page, err := p.text("packaging/files/index.html")
		if err != nil {
			return err
		}
		root := filepath.Join(dir, b.os, b.arch)
		for _, f := range []file{
			program,
			// For people; the image runs by number.
			{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/\nchert:x:65532:65532:chert:/var/lib/chert:/\n")},
			{"etc/group", 0o644, []byte("root:x:0:\nchert:x:65532:\n")},
			{"etc/ssl/certs/ca-certificates.crt", 0o644, authorities()},
			{"usr/share/doc/chert/copyright", 0o644, p.copyright},
			{"srv/index.html", 0o644, page},
		} {
			if err := p.lay(root, f); err != nil {
				return err
			}
		}
		for _, folder := range []string{"tmp", "var/lib"} {
			if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(folder)), 0o755); err != nil {
				return err
			}
		}
		if err := os.Chmod(filepath.Join(root, "tmp"), 0o777|fs.ModeSticky); err != nil { // whatever the umask
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o700); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(name, p.time, p.time)
	})
}

// lay writes a file below a folder.
func (p *product) lay(dir string, f file) error {
	name := filepath.Join(dir, filepath.FromSlash(path.Clean(f.path)))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, f.data, f.mode)
}

// authorities are those that Mozilla trusts, as golang.org/x/crypto has them: this machine's could be others. Those
// that are trusted for a part of their certificates only are left out, since PEM cannot say that.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // to memory: it does not fail
		}
	}
	return b.Bytes()
}
