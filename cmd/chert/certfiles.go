package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/authority"
)

// The files of an authority, in the folder of --dir.
const (
	caCert = "ca.pem"
	caKey  = "ca-key.pem"
)

const (
	secretMode fs.FileMode = 0o600
	publicMode fs.FileMode = 0o644
)

// pemFile is a file to be written.
type pemFile struct {
	path string
	text []byte
	mode fs.FileMode
}

// authority returns the authority in the folder. If there is none it makes one; files are then its files.
func (o *certOptions) authority(names authority.Names,
	now time.Time) (ca *authority.Authority, files []pemFile, err error) {
	certPath, keyPath := filepath.Join(o.dir, caCert), filepath.Join(o.dir, caKey)
	noCert, noKey := absent(certPath) == nil, absent(keyPath) == nil
	switch {
	case noCert && noKey:
		ca, pair, err := authority.New(names, o.unconstrained, now)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot make an authority: %w", err)
		}
		return ca, []pemFile{{keyPath, pair.Key, secretMode}, {certPath, pair.Cert, publicMode}}, nil
	case noCert:
		return nil, nil, fmt.Errorf("%s exists without %s; restore that, or make another authority in another --dir",
			quote(keyPath), quote(certPath))
	case noKey:
		return nil, nil, fmt.Errorf("%s exists without %s; restore that, or make another authority in another --dir",
			quote(certPath), quote(keyPath))
	}
	cert, err := readPEM(certPath, authority.ParseCert)
	if err != nil {
		return nil, nil, err
	}
	key, err := readPEM(keyPath, authority.ParseKey)
	if err != nil {
		return nil, nil, err
	}
	if ca, err = authority.Load(cert, key, now); err != nil {
		return nil, nil, fmt.Errorf("cannot sign with %s and %s: %w; make another authority in another --dir",
			quote(certPath), quote(keyPath), err)
	}
	if o.unconstrained && ca.Constrained() {
		return nil, nil, fmt.Errorf("--unconstrained is for a new authority, and %s exists; make another in another "+
			"--dir", quote(certPath))
	}
	return ca, nil, nil
}

func readPEM[T any](path string, parse func([]byte) (T, error)) (v T, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		v, err = parse(text)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return v, fmt.Errorf("no permission to read %s; run chert as the user it belongs to", quote(path))
	case err != nil:
		return v, fmt.Errorf("cannot use %s: %w", quote(path), cause(err))
	}
	return v, nil
}

// absent fails if there is anything at path.
func absent(path string) error {
	switch _, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return explainWrite(path, err)
	}
	return fmt.Errorf("%s exists; --force replaces it, --name and --dir choose another place", quote(path))
}

// writeFiles writes the files of a new authority, if any, and those of a certificate, which replaces another only
// with force. After an error no file with a new name is left.
func writeFiles(dir string, ca, cert []pemFile, force bool) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return explainWrite(dir, err)
	}
	var made []string
	defer func() {
		if err != nil {
			for _, path := range made {
				os.Remove(path)
			}
		}
	}()
	create := func(path string, f pemFile) error {
		if err := writeNew(path, f.text, f.mode); err != nil {
			return explainWrite(f.path, err)
		}
		made = append(made, path)
		return nil
	}
	for _, f := range ca {
		if err := create(f.path, f); err != nil {
			return err
		}
	}
	if !force {
		for _, f := range cert {
			if err := create(f.path, f); err != nil {
				return err
			}
		}
		return nil
	}
	const temporary = ".new"
	for _, f := range cert {
		os.Remove(f.path + temporary) // left by a chert that was killed
		if err := create(f.path+temporary, f); err != nil {
			return err
		}
	}
	for _, f := range cert {
		if err := os.Rename(f.path+temporary, f.path); err != nil {
			return explainWrite(f.path, err)
		}
	}
	return nil
}

// writeNew writes a file that must not exist. It follows no link, and never lets others read what mode denies them.
func writeNew(path string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
	}
	return err
}

func explainWrite(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission to write %s; choose a folder you may write to with --dir", quote(path))
	}
	return fmt.Errorf("cannot write %s: %w; choose another folder with --dir", quote(path), cause(err))
}
