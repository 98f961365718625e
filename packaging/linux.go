package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers "deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers "rpm"
)

const description = summary + `
chert serves folders and many sites, and forwards requests to other servers,
over HTTP/1.1, HTTP/2 and HTTP/3, with TLS certificates that renew
themselves, on event loops. This package has the command, and a service that
serves the sites of /etc/chert/chert.toml.`

// packages writes a deb and an rpm for each binary for Linux.
func (p *product) packages(dist string) error {
	for _, b := range p.linux() {
		for _, format := range []string{"deb", "rpm"} {
			if err := p.pack(dist, b, format); err != nil {
				return fmt.Errorf("%s for %s: %w", format, b.target, err)
			}
		}
	}
	return nil
}

func (p *product) pack(dist string, b *binary, format string) error {
	stage := filepath.Join(p.temp, format+"-"+b.arch)
	contents, err := p.stage(stage, b, format)
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "chert", Arch: b.arch, Platform: "linux", Version: p.version,
		Section: "httpd", Priority: "optional", License: "MIT",
		Maintainer: maintainer, Vendor: "chert", Homepage: homepage,
		Description: description, MTime: p.time, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Contents:   contents,
			Recommends: []string{"ca-certificates", "logrotate"},
		},
	})
	info.RPM.Summary = summary
	info.RPM.BuildHost = "localhost" // not the name of this machine
	info.RPM.Compression = "zstd"
	info.Deb.Compression = "xz"
	scripts := p.scripts(format)
	if format == "deb" {
		info.Depends = []string{"adduser"}
		info.Provides = []string{"httpd"}
		info.Scripts = nfpm.Scripts{PostInstall: scripts["postinst"], PreRemove: scripts["prerm"],
			PostRemove: scripts["postrm"]}
	} else {
		info.Depends = []string{"shadow-utils", "systemd"}
		info.Provides = []string{"webserver"}
		info.Scripts = nfpm.Scripts{PreInstall: scripts["pre"], PostInstall: scripts["post"],
			PreRemove: scripts["preun"], PostRemove: scripts["postun"]}
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dist, packager.ConventionalFileName(info)),
		func(w io.Writer) error { return packager.Package(info, w) })
}

// scripts are the paths of the maintainer scripts of a format, by name.
func (p *product) scripts(format string) map[string]string {
	paths := map[string]string{}
	for _, name := range []string{"postinst", "prerm", "postrm", "pre", "post", "preun", "postun"} {
		paths[name] = filepath.Join(p.clones[0], "packaging", "files", format+"."+name)
	}
	return paths
}

// stage lays the files of a package below a folder, from where nfpm reads them.
func (p *product) stage(dir string, b *binary, format string) (files.Contents, error) {
	all, err := p.packageFiles(b, format)
	if err != nil {
		return nil, err
	}
	var contents files.Contents
	for _, f := range all {
		from := filepath.Join(dir, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(from, f.data, 0o644); err != nil {
			return nil, err
		}
		kind := files.TypeFile
		if strings.HasPrefix(f.path, "etc/") {
			kind = files.TypeConfigNoReplace
		}
		contents = append(contents, &files.Content{Source: from, Destination: "/" + f.path, Type: kind,
			FileInfo: p.owned("root", f.mode)})
	}
	// The deb's postinst gives them to chert, who does not exist when they are unpacked.
	owner := "root"
	if format == "rpm" {
		owner = "chert"
	}
	for _, folder := range []string{"/var/lib/chert", "/var/log/chert"} {
		contents = append(contents, &files.Content{Destination: folder, Type: files.TypeDir,
			FileInfo: p.owned(owner, 0o750)})
	}
	for _, folder := range []string{"/etc/chert", "/usr/share/chert", "/usr/share/chert/www", "/usr/share/doc/chert", "/usr/share/doc/chert/observability"} {
		contents = append(contents, &files.Content{Destination: folder, Type: files.TypeDir,
			FileInfo: p.owned("root", 0o755)})
	}
	return contents, nil
}

func (p *product) owned(user string, mode fs.FileMode) *files.ContentFileInfo {
	return &files.ContentFileInfo{Owner: user, Group: user, Mode: mode, MTime: p.time}
}

// overrides are what lintian reports and is meant: a binary that needs no C library, folders that other users may not
// look into, and the text of the Apache License, which the other results need too.
const overrides = `chert: copyright-file-contains-full-apache-2-license
chert: copyright-not-using-common-license-for-apache2
chert: statically-linked-binary [usr/bin/chert]
chert: non-standard-dir-perm 0750 != 0755 [var/lib/chert/]
chert: non-standard-dir-perm 0750 != 0755 [var/log/chert/]
`

// completions are where the packages have them.
var completions = map[string]string{
	"bash": "usr/share/bash-completion/completions/chert",
	"zsh":  "usr/share/zsh/vendor-completions/_chert",
	"fish": "usr/share/fish/vendor_completions.d/chert.fish",
}

// packageFiles returns the files of a package.
func (p *product) packageFiles(b *binary, format string) ([]file, error) {
	program, err := b.file("usr/bin/chert")
	if err != nil {
		return nil, err
	}
	const doc = "usr/share/doc/chert/"
	all := []file{program, {doc + "copyright", 0o644, p.copyright}}
	for _, name := range pages {
		text, err := p.page(name, pages)
		if err != nil {
			return nil, err
		}
		all = append(all, file{doc + strings.TrimPrefix(name, "docs/"), 0o644, text})
	}
	changes, err := p.page("CHANGELOG.md", nil)
	if err != nil {
		return nil, err
	}
	all = append(all, file{doc + "CHANGELOG.md.gz", 0o644, compress(changes)})
	for _, f := range []struct{ from, to string }{
		{"packaging/files/chert.service", "usr/lib/systemd/system/chert.service"},
		{"packaging/files/chert.toml", "etc/chert/chert.toml"},
		{"packaging/files/chert.logrotate", "etc/logrotate.d/chert"},
		{"packaging/files/index.html", "usr/share/chert/www/index.html"},
	} {
		text, err := p.text(f.from)
		if err != nil {
			return nil, err
		}
		to := f.to
		if format == "deb" {
			// Debian 12 and Ubuntu before 24.04 look for units of packages in /lib.
			to = strings.Replace(to, "usr/lib/systemd", "lib/systemd", 1)
		}
		all = append(all, file{to, 0o644, text})
	}
	if format == "deb" {
		all = append(all, file{doc + "changelog.gz", 0o644, compress(p.debianChangelog(p.debVersion()))},
			file{"usr/share/lintian/overrides/chert", 0o644, []byte(overrides)})
	}
	for _, f := range p.manual {
		all = append(all, file{"usr/share/man/man1/" + f.path + ".gz", 0o644, compress(f.data)})
	}
	for _, f := range p.shells {
		if to, ok := completions[f.path]; ok {
			if format == "rpm" {
				to = strings.Replace(to, "zsh/vendor-completions", "zsh/site-functions", 1)
			}
			all = append(all, file{to, 0o644, f.data})
		}
	}
	return all, nil
}

// debVersion is the version as dpkg orders it: a pre-release is before the release.
func (p *product) debVersion() string { return strings.Replace(p.number, "-", "~", 1) }
