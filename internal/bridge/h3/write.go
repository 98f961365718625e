package h3

import (
	"errors"
	"os"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http3"
)

// This file is what is sent.

const (
	// joined is how much of a body is copied, so that it is in one write with what frames it.
	joined = 8 << 10
	// maxKept is how much the transport may keep of a stream without having waited: it does not
	// see whether the network takes it.
	maxKept = 16 << 10
)

// errLength is a body that is not what was declared: the stream must be reset, not end.
var errLength = errors.New("h3: the body is not as long as its Content-Length")

// errPartial is an end of the stream that might be within a frame, which RFC 9114 section 7.1 makes an error of the
// connection.
var errPartial = errors.New("h3: the end of a frame has not been sent")

// declare says how much of a body follows, n bytes: it becomes one DATA frame, however it is
// written.
func (st *stream) declare(n int64) {
	if n > 0 && n <= http3.MaxVarint {
		st.frame = uint64(n)
	}
}

// begin takes n bytes for the DATA frame that has begun, or begins one of size bytes.
func (st *stream) begin(n int) (size uint64, err error) {
	if st.within == 0 {
		size = max(st.frame, uint64(n))
		st.frame, st.within = 0, size
	}
	if uint64(n) > st.within {
		return 0, errLength
	}
	st.within -= uint64(n)
	return size, nil
}

// put sends a field section, unless it is empty, and then a and b as DATA, unless both are. It
// waits for the client if it must.
func (st *stream) put(head, a, b []byte) error {
	if st.overdue() { // TryWrite has no deadline
		return os.ErrDeadlineExceeded
	}
	n := len(a) + len(b)
	if len(head) == 0 && n == 0 {
		return nil
	}
	data := uint64(0)
	if n > 0 {
		var err error
		if data, err = st.begin(n); err != nil {
			return err
		}
	}
	apart := len(b) > joined
	if apart && len(head)+len(a) == 0 && data == 0 {
		return st.writeBody(b, 0)
	}
	size := 2*http3.MaxHeaderLen + len(head) + len(a)
	if !apart {
		size += len(b)
	}
	out := buf.Get(size)
	defer out.Release()
	if len(head) > 0 {
		out.B = append(http3.AppendHeader(out.B, http3.FrameHeaders, len(head)), head...)
	}
	if data > 0 {
		out.B = http3.AppendVarint(http3.AppendVarint(out.B, uint64(http3.FrameData)), data)
	}
	before := len(out.B)
	out.B = append(out.B, a...)
	if !apart {
		out.B = append(out.B, b...)
		return st.writeBody(out.B, before)
	}
	if err := st.writeBody(out.B, before); err != nil {
		return err
	}
	return st.writeBody(b, 0)
}

// writeBody writes p, of which what follows the first before bytes is of a body.
func (st *stream) writeBody(p []byte, before int) error {
	n, err := st.write(p)
	st.sent += int64(max(n-before, 0))
	return err
}

// write writes p, of which n bytes have been sent.
func (st *stream) write(p []byte) (n int, err error) {
	if st.kept+len(p) <= maxKept {
		ok, err := st.str.TryWrite(p)
		if ok || err != nil {
			st.kept += len(p)
		}
		switch {
		case err != nil:
			return 0, err
		case ok:
			return len(p), nil
		}
	}
	st.yield()
	st.partial.Store(true)
	for {
		st.beginWrite()
		k, err := st.str.Write(p[n:])
		st.kept = 0 // but for less than a packet
		if n += k; n == len(p) {
			st.partial.Store(false)
			return n, nil
		}
		if err != nil && (k == 0 || !errors.Is(err, os.ErrDeadlineExceeded) || st.overdue()) {
			return n, err
		}
	}
}

// endSent sends the end of the stream.
func (st *stream) endSent() error {
	if st.within > 0 {
		return errLength
	}
	return st.end()
}

// end is endSent of a tunnel, which another goroutine may end than the one that writes.
func (st *stream) end() error {
	if st.partial.Load() {
		return errPartial
	}
	st.unwatchPeer()
	err := st.str.End()
	st.ended.Store(err == nil)
	return err
}

// beginWrite sets the deadline of a write. That of WriteStall begins anew when something was sent.
func (st *stream) beginWrite() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.str.SetWriteDeadline(conn.Sooner(st.writeBy, conn.After(st.s.Shared.Limits.WriteStall)))
}

// overdue reports whether the answer's deadline has passed.
func (st *stream) overdue() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return !st.writeBy.IsZero() && !time.Now().Before(st.writeBy)
}
