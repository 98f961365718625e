package wsframe

import "encoding/binary"

// An Opcode is the type of a frame (RFC 6455 section 5.2).
type Opcode uint8

const (
	Continuation Opcode = 0
	Text         Opcode = 1
	Binary       Opcode = 2
	Close        Opcode = 8
	Ping         Opcode = 9
	Pong         Opcode = 10
)

// Control reports whether frames of this type are control frames, which may come
// between the fragments of a message.
func (o Opcode) Control() bool { return o >= 8 }

// MaxControl is the largest payload of a control frame (RFC 6455 section 5.5).
const MaxControl = 125

// MaxHeader is the length of the longest header, in bytes.
const MaxHeader = 14

const (
	finBit  = 1 << 7
	rsv1Bit = 1 << 6
	rsvBits = 1<<5 | 1<<4
	maskBit = 1 << 7
	// Values of the 7-bit length that announce a longer one.
	length16 = 126
	length64 = 127
)

// Header is that of one frame.
type Header struct {
	Fin, RSV1, Masked bool
	Op                Opcode
	Key               uint32 // the masking key, little-endian
	Length            int64
}

// ParseHeader parses the header at the start of b. n is its length, or 0 if it is
// not complete. Errors are found with the first byte that shows them.
func ParseHeader(b []byte) (h Header, n int, err error) {
	if len(b) == 0 {
		return h, 0, nil
	}
	h.Fin, h.RSV1, h.Op = b[0]&finBit != 0, b[0]&rsv1Bit != 0, Opcode(b[0]&0xf)
	switch {
	case b[0]&rsvBits != 0:
		// RFC 6455 section 5.2: MUST be 0 unless an extension defines them.
		return h, 0, errRSV
	case h.Op > Binary && h.Op < Close || h.Op > Pong:
		return h, 0, errOpcode
	case h.Op.Control() && !h.Fin:
		// Section 5.5: control frames MUST NOT be fragmented.
		return h, 0, errFragmentedControl
	case h.Op.Control() && h.RSV1:
		return h, 0, errRSV // RFC 7692 section 6.1
	}
	if len(b) < 2 {
		return h, 0, nil
	}
	h.Masked = b[1]&maskBit != 0
	short := b[1] &^ maskBit
	if h.Op.Control() && short > MaxControl {
		return h, 0, errLongControl
	}
	n = 2
	switch short {
	case length16:
		n = 4
	case length64:
		n = 10
	}
	end := n
	if h.Masked {
		end += 4
	}
	if len(b) < n {
		return h, 0, nil
	}
	switch short {
	case length16:
		h.Length = int64(binary.BigEndian.Uint16(b[2:]))
	case length64:
		h.Length = int64(binary.BigEndian.Uint64(b[2:]))
	default:
		h.Length = int64(short)
	}
	// Section 5.2: the most significant bit MUST be 0, and the minimal number of
	// bytes MUST be used.
	if h.Length < 0 || short == length16 && h.Length < length16 || short == length64 && h.Length>>16 == 0 {
		return h, 0, errLength
	}
	if len(b) < end {
		return h, 0, nil
	}
	if h.Masked {
		h.Key = binary.LittleEndian.Uint32(b[n:])
	}
	return h, end, nil
}

// Append appends the header to dst.
func (h *Header) Append(dst []byte) []byte {
	first, mask := byte(h.Op), byte(0)
	if h.Fin {
		first |= finBit
	}
	if h.RSV1 {
		first |= rsv1Bit
	}
	if h.Masked {
		mask = maskBit
	}
	switch n := h.Length; {
	case n < length16:
		dst = append(dst, first, mask|byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, first, mask|length16), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, first, mask|length64), uint64(n))
	}
	if h.Masked {
		dst = binary.LittleEndian.AppendUint32(dst, h.Key)
	}
	return dst
}

// AppendFrame appends an unmasked frame that is a whole message, or a control
// frame, to dst. compressed sets RSV1 (RFC 7692 section 6).
func AppendFrame(dst []byte, op Opcode, compressed bool, payload []byte) []byte {
	h := Header{Fin: true, RSV1: compressed, Op: op, Length: int64(len(payload))}
	return append(h.Append(dst), payload...)
}

// Mask masks or unmasks p in place, by words of eight bytes. It returns the key
// for what follows p.
func Mask(p []byte, key uint32) uint32 {
	if key == 0 {
		return 0
	}
	if len(p) >= 8 {
		k := uint64(key)<<32 | uint64(key)
		for len(p) >= 64 {
			b := p[:64]
			binary.LittleEndian.PutUint64(b[0:], binary.LittleEndian.Uint64(b[0:])^k)
			binary.LittleEndian.PutUint64(b[8:], binary.LittleEndian.Uint64(b[8:])^k)
			binary.LittleEndian.PutUint64(b[16:], binary.LittleEndian.Uint64(b[16:])^k)
			binary.LittleEndian.PutUint64(b[24:], binary.LittleEndian.Uint64(b[24:])^k)
			binary.LittleEndian.PutUint64(b[32:], binary.LittleEndian.Uint64(b[32:])^k)
			binary.LittleEndian.PutUint64(b[40:], binary.LittleEndian.Uint64(b[40:])^k)
			binary.LittleEndian.PutUint64(b[48:], binary.LittleEndian.Uint64(b[48:])^k)
			binary.LittleEndian.PutUint64(b[56:], binary.LittleEndian.Uint64(b[56:])^k)
			p = p[64:]
		}
		for len(p) >= 8 {
			binary.LittleEndian.PutUint64(p, binary.LittleEndian.Uint64(p)^k)
			p = p[8:]
		}
	}
	for i := range p {
		p[i] ^= byte(key)
		key = key>>8 | key<<24
	}
	return key
}
