package http3

// MaxVarint is the largest integer that QUIC's encoding has (RFC 9000 section 16).
const MaxVarint = 1<<62 - 1

// AppendVarint appends v, which is MaxVarint at most, in as few bytes as it needs.
func AppendVarint(b []byte, v uint64) []byte {
	switch {
	case v < 1<<6:
		return append(b, byte(v))
	case v < 1<<14:
		return append(b, 0x40|byte(v>>8), byte(v))
	case v < 1<<30:
		return append(b, 0x80|byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return append(b, 0xc0|byte(v>>56), byte(v>>48), byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8),
		byte(v))
}

// VarintLen is how many bytes AppendVarint appends.
func VarintLen(v uint64) int {
	switch {
	case v < 1<<6:
		return 1
	case v < 1<<14:
		return 2
	case v < 1<<30:
		return 4
	}
	return 8
}

// Varint decodes the integer at the beginning of b, which may be longer than it must be. n
// is how many bytes it has, 0 if it is not all there.
func Varint(b []byte) (v uint64, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	n = 1 << (b[0] >> 6)
	if len(b) < n {
		return 0, 0
	}
	v = uint64(b[0] & 0x3f)
	for _, c := range b[1:n] {
		v = v<<8 | uint64(c)
	}
	return v, n
}

// VarintReader reads integers from bytes that come in parts. The zero value is ready.
type VarintReader struct {
	v    uint64
	left uint8 // bytes that are still to come, of an integer that has begun
}

// Read takes the bytes of an integer from the beginning of b: n of them. When it is all
// there, done is true, and the reader ready for another one.
func (r *VarintReader) Read(b []byte) (v uint64, n int, done bool) {
	if r.left == 0 {
		if v, n = Varint(b); n > 0 {
			return v, n, true
		}
		if len(b) == 0 {
			return 0, 0, false
		}
		r.v, r.left, n = uint64(b[0]&0x3f), 1<<(b[0]>>6)-1, 1
	}
	for n < len(b) {
		r.v = r.v<<8 | uint64(b[n])
		n++
		if r.left--; r.left == 0 {
			return r.v, n, true
		}
	}
	return 0, n, false
}

// Within reports whether an integer has begun and not ended.
func (r *VarintReader) Within() bool { return r.left > 0 }
