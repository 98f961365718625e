package h3

import (
	"errors"
	"os"
	"time"

	"github.com/chert-http/chert/internal/buf"
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

// put sends a field section, unless it is empty, and then a and b in a DATA frame, unless both
// are. It waits for the client if it must.
func (st *stream) put(head, a, b []byte) error {
	n := len(a) + len(b)
	if len(head) == 0 && n == 0 {
		return nil
	}
	apart := len(b) > joined
	size := 2*http3.MaxHeaderLen + len(head) + len(a)
	if !apart {
		size += len(b)
	}
	out := buf.Get(size)
	defer out.Release()
	if len(head) > 0 {
		out.B = append(http3.AppendHeader(out.B, http3.FrameHeaders, len(head)), head...)
	}
	if n > 0 {
		out.B = append(http3.AppendHeader(out.B, http3.FrameData, n), a...)
	}
	if !apart {
		out.B = append(out.B, b...)
		return st.write(out.B)
	}
	if err := st.write(out.B); err != nil {
		return err
	}
	return st.write(b)
}

// write writes p.
func (st *stream) write(p []byte) error {
	if st.kept+len(p) <= maxKept {
		ok, err := st.str.TryWrite(p)
		if ok || err != nil {
			st.kept += len(p)
			return err
		}
	}
	st.yield()
	for {
		stalled := st.beginWrite()
		n, err := st.str.Write(p)
		st.kept = 0 // but for less than a packet
		if p = p[n:]; len(p) == 0 {
			return nil
		}
		if err != nil && (n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !stalled()) {
			return err
		}
	}
}

// endSent sends the end of the stream.
func (st *stream) endSent() error {
	st.unwatchPeer()
	err := st.str.End()
	st.ended.Store(err == nil)
	return err
}

// beginWrite sets the deadline of a write. stalled reports, after it, whether that was one of
// WriteStall alone, which begins anew when something was sent.
func (st *stream) beginWrite() (stalled func() bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.str.SetWriteDeadline(st.untilLocked(st.s.Shared.Limits.WriteStall, st.writeBy))
	return func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return st.writeBy.IsZero() || time.Now().Before(st.writeBy)
	}
}
