package h1

import (
	"io"
	"net/http"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
)

// body is a request's body and how it is framed (RFC 9112 section 6).
type body struct {
	bridge.Body
	in      conn.Lent
	te      [1]string // what Request.TransferEncoding points to
	chunked bool
	dec     http1.Chunked
	inTail  bool // the last chunk was read, the trailer section follows
}

// initBody sets Req.Body of a request with a body, as the head's framing says (RFC 9112 section 6.3).
func (x *exchange) initBody(h *http1.Request) {
	b, r := &body{in: x.s.Link.Lent()}, &x.Req
	x.body = b
	if b.chunked = h.Chunked; h.Chunked {
		b.te[0] = "chunked"
		r.TransferEncoding = b.te[:]
		r.ContentLength = -1
		r.Header.Del("Content-Length")
	} else {
		r.ContentLength, b.Left = h.ContentLength, h.ContentLength
	}
	x.SetBody(&b.Body, h.Chunked, !h.Chunked && !h.KeepAlive, h.ExpectContinue)
}

func (x *exchange) ReadBody(p []byte) (int, error) {
	b := x.body
	if b.chunked {
		return x.readChunked(b, p)
	}
	if int64(len(p)) > b.Left {
		p = p[:b.Left]
	}
	n, err := b.in.Read(p)
	b.Left -= int64(n)
	if b.Left == 0 {
		return n, io.EOF
	}
	// RFC 9112 section 8: a body shorter than its Content-Length is incomplete.
	return n, cutShort(err)
}

const (
	// inPlace is the smallest buffer that chunks are read into as they are on the
	// wire, to be decoded in place. For smaller ones they go through the Link's
	// own buffer.
	inPlace = 4 << 10
	// overread is the most that is read beyond the current chunk: it bounds what
	// is returned to the Link when the body ends.
	overread = 64 << 10
)

// readChunked fills p as far as possible without waiting, and returns io.EOF
// together with the last data if the end has arrived: many readers do not call
// Read again.
func (x *exchange) readChunked(b *body, p []byte) (n int, err error) {
	l := x.s.Link
	for !b.inTail {
		src := l.Buffered()
		var k, used int
		switch {
		case len(src) > 0:
			k, used, b.inTail, err = b.dec.Decode(p[n:], src)
			l.Discard(used)
		case n > 0:
			return n, nil
		case len(p) < inPlace:
			if err := cutShort(b.in.Fill()); err != nil {
				return 0, err
			}
			continue
		default:
			m, e := b.in.Read(p[:min(uint64(len(p)), max(b.dec.Left(), overread))])
			if m == 0 {
				return 0, cutShort(e)
			}
			src = p[:m]
			k, used, b.inTail, err = b.dec.Decode(p, src)
			b.in.Unread(src[used:])
		}
		switch n += k; {
		case err == http1.ErrChunkLine:
			return n, http.ErrLineTooLong // net/http's, which programs test for
		case err != nil:
			return n, bridge.ErrFraming
		case used < len(src) && !b.inTail:
			return n, nil // p is full
		}
	}
	if done, err := x.readTrailer(n == 0); !done {
		return n, err
	}
	return n, io.EOF
}

// cutShort turns an end of stream inside a body into an error.
func cutShort(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readTrailer reads the section after the last chunk into Req.Trailer. If it has
// not arrived and wait is false, done is false without an error.
func (x *exchange) readTrailer(wait bool) (done bool, err error) {
	l := x.s.Link
	var p http1.Progress
	for {
		src := l.Buffered()
		n, fields, err := http1.ParseTrailer(src, nil, &p, &x.s.cfg.Head)
		if err != nil {
			return false, bridge.ErrTrailer
		}
		if n > 0 {
			x.addTrailer(string(src[:n]), fields)
			l.Discard(n)
			return true, nil
		}
		if !wait {
			return false, nil
		}
		if err := cutShort(x.body.in.Fill()); err != nil {
			return false, err
		}
	}
}

func (x *exchange) addTrailer(s string, fields []http1.Field) {
	r := &x.Req
	for i := range fields {
		f := &fields[i]
		if r.Trailer == nil {
			r.Trailer = make(http.Header)
		}
		key := http1.CanonicalName([]byte(s[f.Name.Start:f.Name.End]), f.ID)
		r.Trailer[key] = append(r.Trailer[key], s[f.Value.Start:f.Value.End])
	}
}
