//go:build !linux

package lossy

import (
	"errors"
	"os"
)

// OpenTUN fails: there are TUN devices of this kind on Linux only.
func OpenTUN(string) (*os.File, error) { return nil, errors.ErrUnsupported }
