package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// materials writes a bill of materials (SBOM) for each binary: what the go command has recorded in it, as "go version
// -m" prints it, and the licences.
func (p *product) materials(dist string) error {
	for _, b := range p.binaries {
		bom, err := p.bill(b)
		if err != nil {
			return err
		}
		name := filepath.Join(dist, fmt.Sprintf("chert_%s_%s_%s.cdx.json", p.number, b.os, b.arch))
		err = writeFile(name, func(w io.Writer) error {
			return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom,
				cyclonedx.SpecVersion1_6)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *product) bill(b *binary) (*cyclonedx.BOM, error) {
	program, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(program)
	self := component(cyclonedx.ComponentTypeApplication, b.info.Main.Path, p.version, "MIT")
	self.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	licences := map[string]string{}
	for _, m := range p.modules {
		licences[m.path] = m.expression()
	}
	std := component(cyclonedx.ComponentTypeLibrary, "std", strings.TrimPrefix(toolchain, "go"), licences["std"])
	parts, uses := []cyclonedx.Component{std}, []string{std.BOMRef}
	for _, d := range b.info.Deps {
		c := component(cyclonedx.ComponentTypeLibrary, d.Path, d.Version, licences[d.Path])
		if d.Replace != nil || licences[d.Path] == "" {
			return nil, fmt.Errorf("%s: %s is replaced or has no licence", b.target, d.Path)
		}
		if c.Hashes, err = moduleHash(d); err != nil {
			return nil, err
		}
		parts, uses = append(parts, c), append(uses, c.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: p.time.Format(time.RFC3339), Component: &self,
		Properties: settings(b.info)}
	bom.Components = &parts
	// The go command records no edges between modules, so that each is one of the program.
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: self.BOMRef, Dependencies: &uses}}
	return bom, nil
}

// component names a module by its package URL, which scanners look up.
func component(kind cyclonedx.ComponentType, path, version, licence string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	return cyclonedx.Component{BOMRef: url, Type: kind, Name: path, Version: version, PackageURL: url,
		Licenses: &cyclonedx.Licenses{{Expression: licence}}}
}

// moduleHash is the hash of go.sum: that of a list of the hashes of a module's files.
func moduleHash(m *debug.Module) (*[]cyclonedx.Hash, error) {
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("%s has the checksum %q", m.Path, m.Sum)
	}
	return &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}, nil
}

// settings are the build settings that the binary has.
func settings(info *debug.BuildInfo) *[]cyclonedx.Property {
	var all []cyclonedx.Property
	for _, s := range info.Settings {
		all = append(all, cyclonedx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	return &all
}
