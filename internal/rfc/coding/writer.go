package coding

import (
	"errors"
	"io"
)

// ErrClosed is the error of a Writer that is used after Close.
var ErrClosed = errors.New("coding: writer is closed")

// A Writer compresses what is written to it while it goes by. Its methods must
// not be called concurrently. One that is not closed, because its answer was cut
// short, may be left to the garbage collector: it holds no goroutine.
type Writer struct {
	w   io.Writer
	c   Coding
	enc encoder // from the pool and back; nil for Identity, and after Close
	err error   // the first failure, which stays
}

// NewWriter returns a Writer of coding c to w. It writes nothing until it is
// written to, flushed or closed. c must be one of the constants, else every
// method returns an error. An encoder takes 0.7 to 1.1 MiB until Close.
func NewWriter(w io.Writer, c Coding) *Writer {
	z := &Writer{w: w, c: c}
	switch {
	case c >= codings:
		z.err = errUnknown
	case c != Identity:
		z.enc = take(c, live)
		z.enc.Reset(w)
	}
	return z
}

// Write implements io.Writer. Little of p comes out before Flush or Close.
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

// Flush writes out so much that a reader can decode all that was written until
// now. It costs a few bytes each time. It does not flush what it writes to.
func (z *Writer) Flush() error {
	if z.err == nil && z.enc != nil {
		z.err = z.enc.Flush()
	}
	return z.err
}

// Close writes the end of the coded content, also if there is none: it is not
// empty then. It does not close what it writes to. A second Close does nothing.
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
