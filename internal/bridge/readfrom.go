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

// ReadFrom implements io.ReaderFrom: a file goes out by sendfile where the
// answer is not chunked.
func (w *response) ReadFrom(src io.Reader) (n int64, err error) {
	b := buf.Get(copySize)
	defer b.Release()
	room := b.B[:copySize]
	if !w.headSent() {
		// Nothing is sent before the source has given something: it may fail,
		// and its first bytes decide the Content-Type.
		n, err = io.CopyBuffer(writerOnly{w}, io.LimitReader(src, sniffLen), room)
		if err != nil || n < sniffLen {
			return n, err
		}
	}
	if file, size, lim := fileOf(src); file != nil {
		sent, ok, err := w.sendFile(file, size)
		n += sent
		if lim != nil {
			lim.N -= sent
		}
		if ok || err != nil {
			return n, err
		}
	}
	m, err := io.CopyBuffer(writerOnly{w}, src, room)
	return n + m, err
}

// writerOnly hides ReadFrom from io.Copy.
type writerOnly struct{ io.Writer }

func (w *response) headSent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.headOut
}

// fileOf finds the regular file behind a source, how much of it is wanted and
// the limit that must hear how much was taken.
func fileOf(src io.Reader) (conn.File, int64, *io.LimitedReader) {
	size := int64(math.MaxInt64)
	lim, ok := src.(*io.LimitedReader)
	if ok {
		src, size = lim.R, lim.N
	}
	f, ok := src.(conn.File)
	if !ok || size <= 0 {
		return nil, 0, nil
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, 0, nil
	}
	return f, size, lim
}

// sendFile sends up to n bytes of f past the buffers. ok is false when the
// answer's framing or the system does not allow it.
func (w *response) sendFile(f conn.File, n int64) (sent int64, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.hijacked:
		return 0, false, http.ErrHijacked
	case w.handlerDone:
		return 0, false, errDone
	}
	if !w.wroteHeader {
		w.writeHeader(http.StatusOK)
	}
	w.flushStage()
	w.sendHead(nil)
	if w.chunking || w.x.isHEAD || !http1.BodyAllowed(w.status) {
		return 0, false, nil
	}
	if w.length != -1 {
		// Never more than was announced: what follows would be taken for the
		// next answer.
		if n = min(n, w.length-w.written); n <= 0 {
			return 0, false, nil
		}
	}
	if err := w.flushWire(nil); err != nil {
		return 0, true, err
	}
	sent, ok, err = w.x.c.t.SendFile(f, n)
	w.written += sent
	if err != nil {
		w.err = err
		w.closeAfter.Store(true)
		w.x.gone()
	}
	return sent, ok, err
}
