package h3

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/chert-http/chert/internal/bridge/section"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http3"
)

// This file reads a stream: its frames, and the request's body.

// receive reads from the stream. io.EOF comes alone, and sets eof.
func (st *stream) receive(p []byte) (int, error) {
	if st.eof {
		return 0, io.EOF
	}
	n, err := st.str.Read(p)
	if err == io.EOF {
		st.eof = true
		if n > 0 {
			err = nil
		}
	}
	return n, err
}

// fill receives more when nothing is buffered, size bytes at most.
func (st *stream) fill(size int) error {
	if st.leading() && st.read != partNothing {
		return errElsewhere
	}
	st.read = max(st.read, partBytes)
	b := buf.Get(size)
	n, err := st.receive(b.Whole()[:size])
	if n == 0 {
		b.Release()
		return err
	}
	b.B, st.in = b.Whole()[:n], b
	return nil
}

// nextFrame reads to the beginning of the next frame that means something, size bytes at a time,
// and returns its header; that may be of DATA without a byte. io.EOF is the end of the request.
func (st *stream) nextFrame(size int) (h http3.Header, err error) {
	for {
		if len(st.in.Bytes()) == 0 {
			if err := st.fill(size); err != nil {
				if err == io.EOF && st.frames.Within() {
					err = errCut
				}
				return h, err
			}
		}
		part, n := st.frames.Next(st.in.Bytes())
		st.in = st.in.Consume(n)
		if part != http3.PartHeader {
			continue // of a frame that is passed over
		}
		h = st.frames.Header()
		if err := h.CheckRequest(); err != nil {
			return h, err
		}
		known := h.Known()
		if (!known || h.Length == 0 && h.Type == http3.FrameData) && !st.s.spendUseless(h.Length) {
			return h, errUseless
		}
		if known {
			return h, nil
		}
	}
}

// readPayload reads from the payload of the frame that has begun, which has not ended. io.EOF does
// not come.
func (st *stream) readPayload(p []byte) (n int, err error) {
	p = p[:min(uint64(len(p)), st.frames.Left())]
	if have := st.in.Bytes(); len(have) > 0 {
		n = copy(p, have)
		st.in = st.in.Consume(n)
	} else if n, err = st.receive(p); err == io.EOF {
		err = errCut
	}
	if n > 0 {
		st.frames.Next(p[:n])
	}
	return n, err
}

// atEnd reports whether the request has ended, as far as can be told now: most clients say so with
// their last bytes. It sets no deadline.
func (st *stream) atEnd() bool {
	if len(st.in.Bytes()) > 0 {
		return false
	}
	if !st.eof {
		st.str.SetReadDeadline(conn.LongAgo)
		var b [1]byte
		if n, err := st.str.Read(b[:]); n > 0 { // not with the transport that there is
			st.in = buf.Get(1)
			st.in.B = append(st.in.B, b[:n]...)
			st.eof = err == io.EOF
		} else if err == io.EOF {
			st.eof = true
		}
		st.str.SetReadDeadline(time.Time{})
	}
	return st.eof && st.in == nil
}

// DropBody implements bridge.BodyDropper.
func (st *stream) DropBody() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.tunnel == nil && !st.connect {
		st.dropped = true
		st.str.Stop(http3.NoError)
	}
}

// ReadBody implements bridge.Message.
func (st *stream) ReadBody(p []byte) (int, error) {
	if st.frames.Left() == 0 {
		if err := st.beginRead(); err != nil {
			return 0, err
		}
		if err := st.nextData(); err != nil {
			return 0, st.bodyError(err)
		}
	} else if len(st.in.Bytes()) == 0 {
		if err := st.beginRead(); err != nil {
			return 0, err
		}
	}
	n, err := st.readPayload(p)
	if st.received += int64(n); st.length >= 0 && st.received > st.length {
		return 0, st.bodyError(errMessage)
	}
	if err != nil {
		return n, st.bodyError(err)
	}
	if st.length >= 0 && st.received == st.length && st.frames.Left() == 0 && st.eof && st.in == nil {
		return n, io.EOF
	}
	return n, nil
}

// beginRead sets the deadline of a read that may wait. After it the transport returns nothing,
// though it may have received something: it has no read that does not wait.
func (st *stream) beginRead() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.dropped {
		return http.ErrBodyReadAfterClose
	}
	st.waited.Store(true)
	st.str.SetReadDeadline(conn.Sooner(st.readBy, conn.After(st.s.Shared.Limits.ReadStall)))
	return nil
}

// bodySize is how much of a body is received at a time, but for what goes to the handler's buffer.
const bodySize = 4 << 10

// nextData reads to the next DATA frame. io.EOF is the end of the body, after which the trailers
// have been read.
func (st *stream) nextData() error {
	for {
		h, err := st.nextFrame(bodySize)
		switch {
		case err == io.EOF && st.length >= 0 && st.received != st.length:
			return errMessage // RFC 9114 section 4.1.2
		case err != nil:
			return err
		case st.trailed:
			return errAfter
		case h.Type == http3.FrameData:
			if h.Length == 0 {
				continue
			}
			return nil
		}
		if st.connect {
			return errAfter // RFC 9114 section 4.4
		}
		if err := st.readTrailers(h.Length); err != nil {
			return err
		}
	}
}

// readTrailers reads the trailers, and gives the request those that it has announced.
func (st *stream) readTrailers(n uint64) error {
	r := requests.Get().(*request)
	defer r.free()
	if err := st.decode(n, &r.fields); err != nil {
		return err
	}
	f := &r.fields.Fields
	if f.TooLarge || f.Malformed {
		return errMessage
	}
	if err := st.keep(f.Size()); err != nil {
		return err
	}
	trailer, ok := section.Trailer(f)
	if !ok {
		return errMessage
	}
	st.trailed = true
	for k, vv := range trailer {
		if _, ok := st.Req.Trailer[k]; ok {
			st.Req.Trailer[k] = vv
		}
	}
	return nil
}

// bodyError is the error that the handler gets for err, which ends the stream or the connection if
// it is the client's.
func (st *stream) bodyError(err error) error {
	st.mu.Lock()
	dropped := st.dropped
	st.mu.Unlock()
	var e *http3.StreamError
	switch {
	case err == io.EOF:
	case dropped:
		return http.ErrBodyReadAfterClose
	case st.s.failed(err):
	case err == errTooLarge: // trailers
		st.abort(errMessage)
	case err == errNoRoom: // the same. RFC 9114 section 4.1.1: H3_REQUEST_REJECTED is of what no handler has seen
		err = errTrailers
		st.abort(errTrailers)
	case errors.As(err, &e):
		st.abort(e)
	}
	return err
}

var _ conn.UserCode = (*stream)(nil)
