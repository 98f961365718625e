package files

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"time"
)

// File is one file of a folder.
type File struct {
	Name string // its path in a URL: begins with a slash, needs no escape
	Size int64
	// Sparse: no bytes are written, it has zeros only, and takes no room.
	Sparse bool
}

// modified is when all files were last written: long ago, as the files of a site usually were, and always the same,
// so that what servers make of it has always the same length.
var modified = time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)

// Write makes a folder in parent, or in the system's one for temporary files if parent is empty. Everybody may read it,
// as servers may change their user. The caller removes it, also after an error if there is a name.
func Write(parent string, all []File) (dir string, err error) {
	dir, err = os.MkdirTemp(parent, "chert-lab-files-")
	if err != nil {
		return "", err
	}
	// MkdirTemp keeps others out.
	if err := os.Chmod(dir, 0o755); err != nil {
		return dir, err
	}
	made := map[string]bool{"/": true}
	for _, f := range all {
		if folder := path.Dir(f.Name); !made[folder] {
			made[folder] = true
			if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(folder)), 0o755); err != nil {
				return dir, err
			}
		}
		if err := f.write(filepath.Join(dir, filepath.FromSlash(f.Name))); err != nil {
			return dir, err
		}
	}
	// The disk must not be busy with them when it is measured.
	flush()
	return dir, nil
}

func (f File) write(name string) error {
	out, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	if f.Sparse {
		err = out.Truncate(f.Size)
	} else {
		err = f.fill(out)
	}
	if err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	// Linux's relatime writes a time of reading that is not after that of writing: it would for each file, once.
	return os.Chtimes(name, time.Now().Add(time.Hour), modified)
}

func (f File) fill(w io.Writer) error {
	b := bufio.NewWriterSize(w, 256<<10)
	if _, err := io.CopyN(b, f.content(), f.Size); err != nil {
		return err
	}
	return b.Flush()
}

// content is endless: bytes that follow from the name, and that no two files have in common.
func (f File) content() io.Reader { return rand.NewChaCha8(sha256.Sum256([]byte(f.Name))) }

// Content is what is in the file. It takes as much memory.
func (f File) Content() (string, error) {
	if f.Sparse {
		return "", fmt.Errorf("%s: content of a sparse file: %w", f.Name, fs.ErrInvalid)
	}
	b := make([]byte, f.Size)
	_, err := io.ReadFull(f.content(), b)
	return string(b), err
}

// Total is the size of all.
func Total(all []File) (sum int64) {
	for _, f := range all {
		sum += f.Size
	}
	return sum
}
