package http1

// Body reads the body of a response and decides what the end of the connection
// means. It is a small value; Response.Body makes it.
type Body struct {
	chunks  Chunked
	left    int64 // of FramingLength
	framing Framing
	stage   bodyStage
	persist bool
	failed  *Error
}

type bodyStage uint8

const (
	bodyData bodyStage = iota
	bodyTrailer
	bodyDone
)

// Body returns the reader for the body after a final head. It needs neither r nor
// the head's bytes.
func (r *Response) Body() Body {
	d := Body{left: r.ContentLength, framing: r.Framing, persist: r.KeepAlive}
	if r.Framing == FramingNone || r.Framing == FramingLength && d.left == 0 {
		d.stage = bodyDone
	}
	return d
}

// Decode moves body from src to dst, until src has ended, dst is full and data
// follows, or the data has ended. n bytes are in dst, used of src were read. dst may
// begin where src begins: the decoded data is never longer.
//
// A tunnel's data ends with the connection only, as that of FramingClose.
func (d *Body) Decode(dst, src []byte) (n, used int, err error) {
	switch {
	case d.failed != nil:
		return 0, 0, d.failed
	case d.stage != bodyData:
		return 0, 0, nil
	}
	switch d.framing {
	case FramingChunked:
		n, used, done, err := d.chunks.Decode(dst, src)
		if err != nil {
			return n, used, d.fail(err)
		}
		if done {
			d.stage = bodyTrailer
		}
		return n, used, nil
	case FramingLength:
		n = copy(dst, src[:min(int64(len(src)), d.left)])
		if d.left -= int64(n); d.left == 0 {
			d.stage = bodyDone
		}
		return n, n, nil
	}
	n = copy(dst, src)
	return n, n, nil
}

// Next is Decode in place: data is the next part of the body, in the memory of src, and used
// how much of src was read for it. What was read may have been changed, and the capacity of
// data ends with it.
func (d *Body) Next(src []byte) (data []byte, used int, err error) {
	switch {
	case d.failed != nil || d.stage != bodyData:
	case d.framing == FramingLength:
		n := int(min(int64(len(src)), d.left))
		if d.left -= int64(n); d.left == 0 {
			d.stage = bodyDone
		}
		return src[:n:n], n, nil
	case d.framing != FramingChunked:
		return src[:len(src):len(src)], len(src), nil
	}
	n, used, err := d.Decode(src, src)
	return src[:n:used], used, err
}

// fail records an error of what requests and responses have in common.
func (d *Body) fail(err error) *Error {
	d.failed = err.(*Error).inResponse()
	return d.failed
}

// InTrailer reports whether the data has ended and a trailer section follows, which
// Trailer must read.
func (d *Body) InTrailer() bool { return d.stage == bodyTrailer }

// Trailer reads the trailer section from the start of b, as ParseTrailer does.
func (d *Body) Trailer(b []byte, fields []Field, p *Progress, lim *Limits) (n int, out []Field, err error) {
	n, out, err = ParseTrailer(b, fields, p, lim)
	if err != nil {
		return 0, out, d.fail(err)
	}
	if n > 0 {
		d.stage = bodyDone
	}
	return n, out, nil
}

// Done reports whether the response has ended. With FramingClose only the end of
// the connection is that; see Closed.
func (d *Body) Done() bool { return d.stage == bodyDone }

// Closed is called when the server has closed the connection. It returns nil if the
// response is complete, the error of a malformed body, and otherwise ErrTruncated. After
// an error the body must not end for the client as if it were whole.
func (d *Body) Closed() error {
	switch {
	case d.failed != nil:
		return d.failed
	case d.stage == bodyDone:
		return nil
	case d.stage == bodyData && d.framing >= FramingClose:
		d.stage = bodyDone
		return nil
	}
	// RFC 9112 section 8: a message whose chunked coding or length has not ended is
	// incomplete.
	return ErrTruncated
}

// Reusable reports whether another request may be sent. rest is what has arrived
// after the response: bytes that nobody asked for mean that the two sides disagree
// about where it ended (RFC 9112 section 9.2: they are not a valid response).
func (d *Body) Reusable(rest []byte) bool {
	return d.persist && d.stage == bodyDone && len(rest) == 0
}
