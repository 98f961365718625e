package pack

import "errors"

// Errors of a section that cannot be decoded.
var (
	ErrShort   = errors.New("a field section ends within a field")
	ErrInteger = errors.New("an integer of a field section is too large")
	ErrHuffman = errors.New("malformed Huffman code")
)

// text is what strings are made of.
type text interface{ ~string | ~[]byte }

// Integer decodes an integer with a prefix of n bits at the beginning of b, which has a
// byte at least (RFC 7541 section 5.1). It is below 1<<62: RFC 9204 section 4.1.1 has so
// much to be decoded. An error is ErrShort or ErrInteger.
func Integer(b []byte, n uint) (v uint64, rest []byte, err error) {
	mask := uint64(1)<<n - 1
	v = uint64(b[0]) & mask
	if b = b[1:]; v < mask {
		return v, b, nil
	}
	for shift := uint(0); shift < 63; shift += 7 {
		if len(b) == 0 {
			return 0, nil, ErrShort
		}
		c := b[0]
		b = b[1:]
		v += uint64(c&0x7f) << shift
		if v >= 1<<62 {
			break
		}
		if c&0x80 == 0 {
			return v, b, nil
		}
	}
	return 0, nil, ErrInteger
}

// AppendInteger appends v with a prefix of n bits (RFC 7541 section 5.1) after flags.
func AppendInteger(b []byte, flags byte, n, v uint) []byte {
	mask := uint(1)<<n - 1
	if v < mask {
		return append(b, flags|byte(v))
	}
	b = append(b, flags|byte(mask))
	for v -= mask; v >= 0x80; v >>= 7 {
		b = append(b, 0x80|byte(v))
	}
	return append(b, byte(v))
}

// Text decodes a string literal (RFC 7541 section 5.2), whose length has a prefix of n
// bits after the bit for Huffman's code, to the end of f.Bytes. An error is one of those
// above.
func (f *Fields) Text(b []byte, n uint) (s Span, rest []byte, err error) {
	if len(b) == 0 {
		return s, nil, ErrShort
	}
	huffman := b[0]>>n&1 != 0
	size, b, err := Integer(b, n)
	if err != nil {
		return s, nil, err
	}
	if size > uint64(len(b)) {
		return s, nil, ErrShort
	}
	s.Start = uint32(len(f.Bytes))
	if huffman {
		f.Bytes, err = AppendHuffmanDecoded(f.Bytes, b[:size])
	} else {
		f.Bytes = append(f.Bytes, b[:size]...)
	}
	s.End = uint32(len(f.Bytes))
	return s, b[size:], err
}

// AppendText appends a string literal, by Huffman's code where that is shorter, with a
// prefix as that of Text after flags.
func AppendText[T text](b []byte, flags byte, n uint, s T) []byte {
	size := HuffmanLen(s)
	if size < len(s) {
		return AppendHuffman(AppendInteger(b, flags|1<<n, n, uint(size)), s)
	}
	return append(AppendInteger(b, flags, n, uint(len(s))), s...)
}

// AppendName is AppendText of a name in lower case. It appends nothing if it is none.
func AppendName(b []byte, flags byte, n uint, name string) []byte {
	if !ValidName(name) {
		return b
	}
	var few [64]byte
	return AppendText(b, flags, n, lower(few[:0], name))
}
