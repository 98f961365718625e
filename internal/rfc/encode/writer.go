package encode

import (
	"errors"
	"io"

	"github.com/chert-http/chert/internal/rfc/coding"
)

// ErrClosed is the error of a Writer that is used after Close.
var ErrClosed = errors.New("encode: writer is closed")

// A Writer compresses a stream. It is not safe for concurrent use. A Writer that
// is not closed, because its response was cut short, may be left to the garbage
// collector: it holds no goroutine.
type Writer struct {
	w   io.Writer
	c   coding.Coding
	enc encoder // from the pool and back; nil for Identity, and after Close
	err error   // the first failure, which stays
}

// NewWriter returns a Writer of coding c to w. It writes nothing until it is
// written to, flushed or closed. c must be one of the constants, otherwise
// every method returns an error. An encoder takes 0.7 to 1.1 MiB until Close.
func NewWriter(w io.Writer, c coding.Coding) *Writer {
	z := &Writer{w: w, c: c}
	switch {
	case c >= codings:
		z.err = errUnknown
	case c != coding.Identity:
		z.enc = take(c, live)
		z.enc.Reset(w)
	}
	return z
}

// Write implements io.Writer. Most of p is buffered until Flush or Close.
func (z *Writer) Write(p []byte) (n int, err error) {
	switch {
	case z.err != nil:
		return 0, z.err
	case z.enc == nil:
		n, err = z.w.Write(p)
	default:
		n, err = z.enc.Write(p)
	}
	z.err = err
	return n, err
}

// Flush writes enough that a reader can decode everything written so far. It
// costs a few bytes each time. It does not flush the underlying writer.
func (z *Writer) Flush() error {
	if z.err == nil && z.enc != nil {
		z.err = z.enc.Flush()
	}
	return z.err
}

// Close writes the end of the coded content, even of empty content, whose coded
// form is not empty. It does not close the underlying writer. A second Close
// does nothing.
func (z *Writer) Close() error {
	if z.err == ErrClosed {
		return nil
	}
	err := z.err
	if z.enc != nil {
		if err == nil {
			err = z.enc.Close()
		}
		give(z.c, live, z.enc)
		z.enc = nil
	}
	z.w, z.err = nil, ErrClosed
	return err
}
