package static

import (
	"io"
	"net/http"
	"os"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// This file is what only the ordinary path can do: open files and stream.

// plain is one request on the ordinary path: the writer of its response, which sends
// a direct.File in the best way the server supports. It is used by one
// goroutine.
type plain struct {
	http.ResponseWriter
	h     *Handler
	entry *entry // whose file is sent; nil if it is another
	// stream, if not nil, writes the body instead of the File in the response;
	// file, if not nil, is what it reads.
	stream func(w http.ResponseWriter) error
	file   file
}

// end ends the use of what was opened.
func (p *plain) end() {
	if p.file != nil {
		p.file.Close()
	}
}

// SendFile implements wire.FileSender.
func (p *plain) SendFile(f direct.File) error {
	if p.stream != nil {
		return p.stream(p.ResponseWriter)
	}
	if s, ok := p.ResponseWriter.(wire.FileSender); ok {
		return s.SendFile(f)
	}
	if d := p.own(&f); d != nil {
		return copyChecked(p.ResponseWriter, d, f)
	}
	return f.CopyTo(p.ResponseWriter)
}

// piece is how much of a file is sent between two checks, in bytes.
const piece = 1 << 20

// copyChecked copies f from d, whose offset is f's.
func copyChecked(w io.Writer, d *os.File, f direct.File) error {
	for {
		n := min(f.Len, piece)
		if err := copyExactly(w, d, n); err != nil {
			return err
		}
		if f.Len -= n; f.Len == 0 {
			return nil
		}
		if f.Check != nil {
			if err := f.Check(); err != nil {
				return err
			}
		}
	}
}

// own returns a descriptor of the same file with an offset of its own, or nil
// if there is none: net/http uses sendfile only for an *os.File, from the
// file's offset, and must not move that of the cached one.
func (p *plain) own(f *direct.File) *os.File {
	if p.entry == nil {
		if _, err := f.File.Seek(f.Offset, io.SeekStart); err != nil {
			return nil
		}
		return f.File
	}
	again, st, err := p.h.src.open(p.entry.name)
	if err != nil {
		return nil
	}
	p.file = again
	d := again.disk()
	if d == nil || !st.content(&p.entry.stat) {
		return nil
	}
	if _, err := d.Seek(f.Offset, io.SeekStart); err != nil {
		return nil
	}
	return d
}

// copyExactly copies n bytes; fewer are an error.
func copyExactly(w io.Writer, r io.Reader, n int64) error {
	got, err := io.CopyN(w, r, n)
	if err == io.EOF && got < n {
		return io.ErrUnexpectedEOF
	}
	return err
}

// openSame opens the file of an entry that keeps none, if it is still the same.
func (h *Handler) openSame(e *entry) (file, error) {
	f, st, err := h.open(e.name)
	if err != nil {
		return nil, err
	}
	if !st.content(&e.stat) {
		f.Close()
		e.stale.Store(true)
		h.cache.drop(e)
		return nil, errChanging
	}
	return f, nil
}

// openPart opens a part of the file of an entry that keeps none. p streams files
// that are not the system's.
func (h *Handler) openPart(e *entry, p *plain, offset, length int64) (direct.File, error) {
	f, err := h.openSame(e)
	if err != nil {
		return direct.File{}, err
	}
	if d := f.disk(); d != nil {
		fd := int(d.Fd())
		return direct.File{
			File: d, Offset: offset, Len: length,
			Check: func() error { return unwritten(d, fd, &e.stat) },
			Done:  func() { f.Close() },
		}, nil
	}
	p.file = f
	p.stream = func(w http.ResponseWriter) error {
		r := io.Reader(f)
		if offset > 0 {
			r = io.NewSectionReader(readerAt(f), offset, length)
		}
		return copyExactly(w, r, length)
	}
	return direct.File{File: unopened, Len: length}, nil
}

// canSeek reports whether readerAt works for f.
func canSeek(f file) bool {
	if w, ok := f.(fsFile); ok {
		_, at := w.File.(io.ReaderAt)
		_, seek := w.File.(io.Seeker)
		return at || seek
	}
	return true
}

// readerAt returns an io.ReaderAt of f, for one goroutine.
func readerAt(f file) io.ReaderAt {
	if d := f.disk(); d != nil {
		return d
	}
	w := f.(fsFile)
	if r, ok := w.File.(io.ReaderAt); ok {
		return r
	}
	return seekingReader{w.File.(io.ReadSeeker)}
}

// seekingReader is an io.ReaderAt of a file that can only seek.
type seekingReader struct{ f io.ReadSeeker }

func (s seekingReader) ReadAt(p []byte, offset int64) (int, error) {
	if _, err := s.f.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	return io.ReadFull(s.f, p)
}
