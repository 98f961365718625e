package bridge

import (
	"io"
	"math"
	"net/http"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
)

// sniffLen is how much of a body http.DetectContentType considers.
const sniffLen = 512

// copySize is the buffer of a copy through user space.
const copySize = 32 << 10

// ReadFrom implements io.ReaderFrom: if the response is not chunked, a file is
// sent by sendfile and data of another socket by splice.
func (w *Response) ReadFrom(src io.Reader) (n int64, err error) {
	if !w.headSent() {
		// Nothing is sent before the source has returned data: it may fail, and
		// its first bytes decide the Content-Type.
		n, err = copyTo(writerOnly{w}, io.LimitReader(src, sniffLen), sniffLen)
		if err != nil || n < sniffLen {
			return n, err
		}
	}
	m, ok, err := w.zeroCopy(src)
	if n += m; ok || err != nil {
		return n, err
	}
	m, err = copyTo(upToLength{w}, src, copySize)
	return n + m, err
}

// copyTo copies through a buffer of the given size.
func copyTo(dst io.Writer, src io.Reader, size int) (int64, error) {
	b := buf.Get(size)
	defer b.Release()
	return io.CopyBuffer(dst, src, b.B[:size])
}

// writerOnly hides ReadFrom from io.Copy.
type writerOnly struct{ io.Writer }

// upToLength is that too. If a source returns more than was declared, it writes
// only the declared length, as zeroCopy does, so that the response is complete.
type upToLength struct{ w *Response }

func (u upToLength) Write(p []byte) (int, error) {
	room := u.w.room()
	if room < 0 || int64(len(p)) <= room {
		return u.w.Write(p)
	}
	n, err := u.w.Write(p[:room])
	if err == nil {
		err = http.ErrContentLength
	}
	return n, err
}

// room is how much of the declared length is left, -1 when there is none.
func (w *Response) room() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Progress == nil || w.Length == -1 {
		return -1
	}
	return max(w.Length-w.Written, 0)
}

func (w *Response) headSent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Progress != nil && w.HeadOut
}

// smallFile is the largest file that is read and sent with the head in one
// write: the call and the packet that this saves cost more than the copy.
const smallFile = 16 << 10

// zeroCopy sends src bypassing the buffers, or user space altogether, as far as
// the declared length allows. ok is false if src or the framing does not
// support that.
func (w *Response) zeroCopy(src io.Reader) (sent int64, ok bool, err error) {
	n := int64(math.MaxInt64)
	lim, _ := src.(*io.LimitedReader)
	if lim != nil {
		src, n = lim.R, lim.N
		defer func() { lim.N -= sent }()
	}
	file, sock := fileOf(src), socketOf(src)
	if n <= 0 || file == nil && sock == nil {
		return 0, false, nil
	}
	if n, err = w.beginZeroCopy(n); n <= 0 || err != nil {
		return 0, false, err
	}
	if file == nil {
		sent, ok, err = w.splice(sock, n)
	} else if n > smallFile {
		sent, ok, err = w.sendFile(file, -1, n)
	}
	if ok || err != nil {
		return sent, true, err
	}
	m, err := copyTo(writerOnly{w}, io.LimitReader(src, n-sent), int(min(n-sent, copySize)))
	return sent + m, true, err
}

// beginZeroCopy completes the head and returns how many of n bytes may then be
// sent: none if they must pass through the framing.
func (w *Response) beginZeroCopy(n int64) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.unusable(); err != nil {
		return 0, err
	}
	if !w.wroteHeader {
		w.head(http.StatusOK)
	}
	w.flushStage()
	if w.x.IsHEAD || !BodyAllowed(w.Status) || w.x.Shared || w.Chunked {
		return 0, nil
	}
	if w.Length != -1 {
		// Never more than was declared: the client would take the excess for
		// the next response.
		n = min(n, w.Length-w.Written)
	}
	return n, w.Err
}

// passBy sends n bytes with f, bypassing the buffers, after what is in them.
func (w *Response) passBy(n int64, f func() (int64, error)) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Another goroutine may have used the response since beginZeroCopy.
	if err := w.unusable(); err != nil {
		return 0, err
	}
	if w.Length != -1 && w.Written+n > w.Length {
		w.Written += n // as beginWrite counts
		return 0, http.ErrContentLength
	}
	w.flushStage()
	if err := w.flush(); err != nil {
		return 0, err
	}
	sent, err := f()
	w.Written += sent
	w.Given += sent
	w.failed(err)
	return sent, err
}

// fileOf returns the regular file that src is, or nil.
func fileOf(src io.Reader) conn.File {
	if f, ok := src.(conn.File); ok {
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
			return f
		}
	}
	return nil
}

// sendFile sends up to n bytes of f, which beginZeroCopy has returned, as conn.Lent does. ok
// is false if the system does not support that.
func (w *Response) sendFile(f conn.File, offset, n int64) (sent int64, ok bool, err error) {
	sent, err = w.passBy(n, func() (sent int64, err error) {
		sent, ok, err = w.x.c.Link.Lent().SendFile(f, offset, n)
		return sent, err
	})
	return sent, ok, err
}

// filePiece is how much of a file is sent between two of its checks while the
// sender waits for the client, in bytes.
const filePiece = 1 << 20

// SendFile implements wire.FileSender.
func (w *Response) SendFile(f direct.File) error {
	if f.Len > smallFile && !w.headSent() {
		// As in ReadFrom: the first bytes decide the Content-Type.
		n, err := copyTo(upToLength{w}, io.NewSectionReader(f.File, f.Offset, sniffLen), sniffLen)
		f.Offset += n
		f.Len -= n
		if err != nil {
			return err
		}
	}
	for begun := false; f.Len > 0; begun = true {
		if begun && f.Check != nil {
			if err := f.Check(); err != nil {
				return err
			}
		}
		if f.Len <= smallFile {
			break
		}
		n, err := w.beginZeroCopy(min(f.Len, filePiece))
		if err != nil || n <= 0 {
			break // CopyTo will return why
		}
		sent, ok, err := w.sendFile(f.File, f.Offset, n)
		if !ok && err == nil {
			break
		}
		if err == nil && sent < n {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		f.Offset += sent
		f.Len -= sent
	}
	return f.CopyTo(upToLength{w})
}
