package http3

// This file is what comes on the two streams of QPACK (RFC 9204 section 4.2), where neither
// side has a dynamic table.

var (
	errEncoderStream = &ConnError{QPACKEncoderStreamError, "an instruction for a dynamic table that has no room"}
	errDecoderStream = &ConnError{QPACKDecoderStreamError, "an acknowledgment of what was never sent"}
	errCancellation  = &ConnError{QPACKDecoderStreamError, "the ID of a cancelled stream is too large"}
)

// CheckEncoderStream judges bytes of the peer's encoder stream, which may be cut anywhere.
// An error is a ConnError.
func CheckEncoderStream(p []byte) error {
	for _, c := range p {
		// RFC 9204 section 3.2.3 has no instructions at all where the capacity that was
		// announced is 0. Of a capacity of 0, nothing comes; any other one and any entry
		// exceeds what is allowed (sections 4.3.1 and 3.2.2). Each of these is known by its
		// first byte, so nothing has to be kept.
		if c != 0x20 {
			return errEncoderStream
		}
	}
	return nil
}

// DecoderStream judges the bytes of the peer's decoder stream. The zero value is ready.
type DecoderStream struct {
	v     uint64
	shift uint8
	rest  bool // of an integer that has begun
}

// Check judges the next bytes, which may be cut anywhere. cancelled is how many streams
// they cancel: it means nothing to an encoder without a table, but each has its cost. An
// error is a ConnError.
func (d *DecoderStream) Check(p []byte) (cancelled int, err error) {
	for _, c := range p {
		switch {
		case d.rest:
			// As pack.Integer.
			if d.v += uint64(c&0x7f) << d.shift; d.v > MaxVarint || d.shift > 56 {
				return cancelled, errCancellation
			}
			d.shift += 7
			if d.rest = c&0x80 != 0; !d.rest {
				cancelled++
			}
		case c&0xc0 != 0x40:
			// RFC 9204 section 4.4.1: an acknowledgment of a section without references;
			// 4.4.3: an increment beyond the insertions that were sent, of which there are
			// none.
			return cancelled, errDecoderStream
		case c == 0x7f:
			d.v, d.shift, d.rest = 0x3f, 0, true
		default:
			cancelled++
		}
	}
	return cancelled, nil
}
