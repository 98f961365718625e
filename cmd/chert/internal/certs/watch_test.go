package certs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A File is loaded after every change, and an error is reported once, when the files
// have stopped changing.
func TestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(cert, "1")
	write(key, "1")
	loads, errFit := 0, errors.New("they do not fit")
	f := NewFile(Stamps(cert, key), func() error {
		loads++
		a, errA := os.ReadFile(cert)
		b, errB := os.ReadFile(key)
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		if string(a) != string(b) {
			return errFit
		}
		return nil
	}, cert, key)
	check := func(what string, wantLoaded bool, wantErr error, wantLoads int) {
		t.Helper()
		loads = 0
		if loaded, err := f.Check(); loaded != wantLoaded || !errors.Is(err, wantErr) || loads != wantLoads {
			t.Errorf("%s: %v %v after %d loads, want %v %v after %d", what, loaded, err, loads, wantLoaded, wantErr, wantLoads)
		}
	}
	check("nothing has changed", false, nil, 0)
	write(cert, "2")
	check("the certificate alone", false, nil, 1)
	write(key, "2")
	check("both", true, nil, 1)
	check("nothing has changed", false, nil, 0)
	write(cert, "3")
	check("wrong", false, nil, 1)
	check("still wrong", false, errFit, 1)
	check("reported already", false, nil, 1)
	write(cert, "4")
	check("wrong in another way", false, nil, 1)
	check("still", false, errFit, 1)
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	check("gone", false, nil, 1)
	check("still gone", false, os.ErrNotExist, 1)
	write(key, "4")
	check("right", true, nil, 1)
	check("nothing has changed", false, nil, 0)
	write(cert, "4") // another file with the same content
	check("replaced", true, nil, 1)
}
