//go:build !linux

package million

import (
	"context"
	"errors"
	"io"
)

// Run needs Linux.
func Run(context.Context, []string, io.Writer, io.Writer) error {
	return errors.New("million needs Linux")
}
