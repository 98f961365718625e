package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// archives writes an archive for each binary: for Windows a zip, for the others a tar.gz.
func (p *product) archives(dist string) error {
	for _, b := range p.binaries {
		name := fmt.Sprintf("chert_%s_%s_%s", p.number, b.os, b.arch)
		files, err := p.archiveFiles(b, name)
		if err != nil {
			return err
		}
		write, ext := writeTar, ".tar.gz"
		if b.os == "windows" {
			write, ext = writeZip, ".zip"
		}
		if err := writeFile(filepath.Join(dist, name+ext), func(w io.Writer) error {
			return write(w, files,
				p.time)
		}); err != nil {
			return err
		}
	}
	return nil
}

// archiveFiles returns the files of an archive, all in one folder.
func (p *product) archiveFiles(b *binary, folder string) ([]file, error) {
	program, err := b.file(folder + "/" + b.program())
	if err != nil {
		return nil, err
	}
	files := []file{program, {folder + "/LICENSES", 0o644, p.copyright}}
	packed := append([]string{"LICENSE", "README.md", "CHANGELOG.md"}, pages...)
	for _, name := range packed {
		text, err := p.page(name, packed)
		if err != nil {
			return nil, err
		}
		files = append(files, file{folder + "/" + name, 0o644, text})
	}
	for _, f := range p.manual {
		files = append(files, file{folder + "/man/" + f.path, f.mode, f.data})
	}
	for _, f := range p.shells {
		files = append(files, file{folder + "/completion/" + scriptName(f.path), f.mode, f.data})
	}
	return files, nil
}

// scriptName is the file of a shell's completions. PowerShell runs no script with another ending than .ps1.
func scriptName(shell string) string {
	if shell == "powershell" {
		shell = "ps1"
	}
	return "chert." + shell
}

// writeFile creates a file, and returns the first error of write and of closing it.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// writeTar depends on nothing but its arguments: owners, times and the head of gzip are fixed.
func writeTar(w io.Writer, files []file, at time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Size: int64(len(f.data)), Mode: int64(f.mode),
			ModTime: at, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

func writeZip(w io.Writer, files []file, at time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: at.UTC()}
		h.SetMode(f.mode)
		e, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := e.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}
