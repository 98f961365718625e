package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// sumsName is the file with the checksums, in the format of sha256sum --check.
const sumsName = "SHA256SUMS"

func checksums(dist string) error {
	entries, err := os.ReadDir(dist) // sorted
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, e := range entries {
		if e.IsDir() || e.Name() == sumsName {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dist, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(dist, sumsName), b.Bytes(), 0o644)
}
