package bridge

import (
	"io"
	"math"
	"net/http"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
)

// sniffLen is how much of a body http.DetectContentType looks at.
const sniffLen = 512

// copySize is the buffer of a copy through user space.
const copySize = 32 << 10

// ReadFrom implements io.ReaderFrom: where the answer is not chunked, a file
// goes out by sendfile and what another socket sends by splice.
func (w *response) ReadFrom(src io.Reader) (n int64, err error) {
	if !w.headSent() {
		// Nothing is sent before the source has given something: it may fail,
		// and its first bytes decide the Content-Type.
		n, err = copyTo(writerOnly{w}, io.LimitReader(src, sniffLen), sniffLen)
		if err != nil || n < sniffLen {
			return n, err
		}
	}
	m, ok, err := w.direct(src)
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

// upToLength is that too. Of a source that gives more than was announced it
// writes as much as that, as direct does, so that the answer is complete.
type upToLength struct{ w *response }

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
func (w *response) room() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing == nil || w.length == -1 {
		return -1
	}
	return max(w.length-w.written, 0)
}

func (w *response) headSent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writing != nil && w.headOut
}

// smallFile is what is rather read and sent with the head in one write: the
// call and the packet that this saves cost more than copying that much.
const smallFile = 16 << 10

// direct sends src past the buffers, or past user space altogether, as far as
// the answer's declared length allows. ok is false when src or the framing is
// not made for that.
func (w *response) direct(src io.Reader) (sent int64, ok bool, err error) {
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
	if n, err = w.beginDirect(n); n <= 0 || err != nil {
		return 0, false, err
	}
	if file == nil {
		sent, ok, err = w.splice(sock, n)
	} else if n > smallFile {
		sent, ok, err = w.sendFile(file, n)
	}
	if ok || err != nil {
		return sent, true, err
	}
	m, err := copyTo(writerOnly{w}, io.LimitReader(src, n-sent), int(min(n-sent, copySize)))
	return sent + m, true, err
}

// beginDirect completes the head and returns how many of n bytes may then be
// sent: none when the answer's framing wants to see them.
func (w *response) beginDirect(n int64) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.hijacked:
		return 0, http.ErrHijacked
	case w.handlerDone:
		return 0, errDone
	}
	if !w.wroteHeader {
		w.writeHeader(http.StatusOK)
	}
	w.flushStage()
	w.sendHead(nil)
	if w.chunking || w.x.isHEAD || !http1.BodyAllowed(w.status) {
		return 0, nil
	}
	if w.length != -1 {
		// Never more than was announced: what follows would be taken for the
		// next answer.
		n = min(n, w.length-w.written)
	}
	return n, w.err
}

// passBy sends n bytes past the buffers, behind what is in them, by f.
func (w *response) passBy(n int64, f func(t conn.Transport) (int64, error)) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Others may have used the response since beginDirect.
	switch {
	case w.hijacked:
		return 0, http.ErrHijacked
	case w.handlerDone:
		return 0, errDone
	case w.length != -1 && w.written+n > w.length:
		w.written += n // as beginWrite counts
		return 0, http.ErrContentLength
	}
	w.flushStage()
	if err := w.flushWire(nil); err != nil {
		return 0, err
	}
	sent, err := f(w.x.c.t)
	w.written += sent
	if w.err = err; err != nil {
		w.closeAfter.Store(true)
		w.x.gone()
	}
	return sent, err
}

// fileOf returns the regular file that src is, or nil.
func fileOf(src io.Reader) conn.File {
	f, ok := src.(conn.File)
	if !ok {
		return nil
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	return f
}

// sendFile sends up to n bytes of f. ok is false when the system does not do
// that.
func (w *response) sendFile(f conn.File, n int64) (sent int64, ok bool, err error) {
	sent, err = w.passBy(n, func(t conn.Transport) (sent int64, err error) {
		sent, ok, err = t.SendFile(f, -1, n)
		return sent, err
	})
	return sent, ok, err
}
