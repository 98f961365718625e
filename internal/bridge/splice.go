package bridge

import (
	"io"
	"net"
	"os"
	"reflect"
	"syscall"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
)

// socket is a source that can be spliced from.
type socket interface {
	net.Conn
	syscall.Conn
}

// socketOf returns the stream socket that src is, or nil. Types that embed one
// are not used: they may have a Read of their own.
func socketOf(src io.Reader) socket {
	switch s := src.(type) {
	case *net.TCPConn:
		return s
	case *net.UnixConn:
		if a := s.LocalAddr(); a != nil && a.Network() == "unix" {
			return s
		}
		return nil
	}
	// io.Copy calls WriteTo of a *net.TCPConn, which passes itself on as an
	// unexported type of package net without WriteTo.
	if v := reflect.ValueOf(src); v.Kind() == reflect.Struct && v.Type().PkgPath() == "net" {
		if f := v.FieldByName("TCPConn"); f.IsValid() && f.CanInterface() {
			if s, ok := f.Interface().(*net.TCPConn); ok {
				return s
			}
		}
	}
	return nil
}

// spliceMax is the most that one Take requests; a pipe holds no more.
const spliceMax = 1 << 20

// splice sends up to n bytes of src through a pipe. ok is false if the rest has
// to be copied.
//
// The wait for the source ends as a Read of it would, by its deadlines and its
// Close, and by nothing else. mu is not held meanwhile, so a handler that
// returns while another goroutine is here does not wait for a silent source.
func (w *Response) splice(src socket, n int64) (sent int64, ok bool, err error) {
	l := w.x.c.Link.Lent()
	if !sys.HaveSplice || !w.canRelay(l) {
		return 0, false, nil
	}
	raw, err := src.SyscallConn()
	if err != nil {
		return 0, false, nil
	}
	if err := w.FlushError(); err != nil {
		return 0, true, err
	}
	var r conn.Relay
	defer r.Close()
	var got int
	var e sys.Errno
	take := func(fd uintptr) bool {
		got, e = r.Take(int(fd), int(min(n-sent, spliceMax)))
		return !sys.Again(e)
	}
	// Data that is read and not sent, because the client has disconnected, is
	// lost, as with net/http.
	give := func() (int64, error) {
		n, err := l.SendRelay(&r)
		return int64(n), err
	}
	for sent < n {
		err := raw.Read(take)
		switch {
		case err != nil:
			return sent, true, readError(src, err)
		case e == sys.NoPipe:
			m, err := w.copyOnce(src, n-sent)
			if sent += m; err == io.EOF {
				return sent, true, nil
			} else if err != nil {
				return sent, true, err
			}
			continue
		case e != 0 && sys.CannotSplice(e):
			return sent, false, nil
		case e != 0:
			return sent, true, readError(src, os.NewSyscallError("splice", e))
		case got == 0:
			return sent, true, nil // the source's end
		}
		m, err := w.passBy(int64(got), give)
		sent += m
		if err != nil {
			return sent, true, err
		}
	}
	return sent, true, nil
}

// canRelay is l's CanRelay, which only the goroutine that may send calls: another one of the handler may write, or
// the handler return, since beginZeroCopy.
func (w *Response) canRelay(l conn.Lent) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unusable() == nil && l.CanRelay()
}

// copyOnce sends up to n bytes that one Read returns, immediately as splice does.
func (w *Response) copyOnce(src io.Reader, n int64) (int64, error) {
	b := buf.Get(copySize)
	defer b.Release()
	got, err := src.Read(b.B[:min(n, copySize)])
	if got == 0 {
		return 0, err
	}
	sent, err := w.Write(b.B[:got])
	if err == nil {
		err = w.FlushError()
	}
	return int64(sent), err
}

// readError wraps err like the errors of the source's own Read.
func readError(src net.Conn, err error) error {
	if oe, ok := err.(*net.OpError); ok {
		err = oe.Err
	}
	return &net.OpError{
		Op: "read", Net: src.LocalAddr().Network(), Source: src.LocalAddr(), Addr: src.RemoteAddr(), Err: err,
	}
}
