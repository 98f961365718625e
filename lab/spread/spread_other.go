//go:build !unix

package spread

import (
	"context"
	"errors"
	"io"
)

// Main returns an error: the processes are told by signals to load another file.
func Main(context.Context, []string, io.Writer, io.Writer) error {
	return errors.New("spread needs signals, which this system does not have")
}
