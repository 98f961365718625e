package pack

// The decoder looks at the next huffPeek bits at once: codes of up to that many are
// in huffTable, and they are nearly all that occur. Longer ones are found by their
// place among all codes of the same length, as the code is canonical.
const huffPeek = 10

// huffEntry is a symbol and the length of its code; 0 for a longer code.
type huffEntry struct{ sym, bits uint8 }

// huffLong is the codes of one length above huffPeek: n of them from first on, whose
// symbols begin at huffSyms[at].
type huffLong struct {
	first uint32
	n, at uint16
}

var (
	huffTable [1 << huffPeek]huffEntry
	huffLongs [31]huffLong
	huffSyms  [256]uint8
)

func init() {
	at := 0
	for bits := 1; bits <= 30; bits++ {
		l := &huffLongs[bits]
		l.at = uint16(at)
		// In the order of their codes, which is that of the symbols.
		for sym, n := range huffLens {
			if int(n) != bits {
				continue
			}
			code := huffCodes[sym]
			if l.n == 0 {
				l.first = code
			}
			l.n++
			huffSyms[at] = uint8(sym)
			at++
			if bits <= huffPeek {
				from := code << (huffPeek - bits)
				for i := range uint32(1) << (huffPeek - bits) {
					huffTable[from+i] = huffEntry{uint8(sym), n}
				}
			}
		}
	}
}

// AppendHuffmanDecoded appends what src stands for (RFC 7541 section 5.2). An error is ErrHuffman.
func AppendHuffmanDecoded(dst, src []byte) ([]byte, error) {
	var acc uint64 // the next bits, from the highest one on
	have := 0
	for {
		for have <= 56 && len(src) > 0 {
			acc |= uint64(src[0]) << (56 - have)
			src = src[1:]
			have += 8
		}
		for have >= 30 || len(src) == 0 {
			e := huffTable[acc>>(64-huffPeek)]
			bits := int(e.bits)
			if bits == 0 {
				e.sym, bits = longCode(acc)
			}
			if bits == 0 || bits > have {
				if len(src) > 0 {
					return dst, ErrHuffman // EOS
				}
				return dst, padding(acc, have)
			}
			dst = append(dst, e.sym)
			acc <<= bits
			have -= bits
		}
	}
}

// padding judges what is left after the last code: fewer than 8 bits, all 1.
func padding(acc uint64, have int) error {
	if have > 7 || acc>>(64-8)|0xff>>have != 0xff {
		return ErrHuffman
	}
	return nil
}

// longCode decodes a code of more than huffPeek bits. bits is 0 for EOS, or if that
// is not all there.
func longCode(acc uint64) (sym uint8, bits int) {
	for bits = huffPeek + 1; bits <= 30; bits++ {
		l := &huffLongs[bits]
		if i := uint32(acc>>(64-bits)) - l.first; l.n > 0 && uint32(acc>>(64-bits)) >= l.first && i < uint32(l.n) {
			return huffSyms[l.at+uint16(i)], bits
		}
	}
	return 0, 0
}

// HuffmanLen is how many bytes the code of s has.
func HuffmanLen[T text](s T) int {
	n := 0
	for i := 0; i < len(s); i++ {
		n += int(huffLens[s[i]])
	}
	return (n + 7) / 8
}

// AppendHuffman appends the code of s.
func AppendHuffman[T text](dst []byte, s T) []byte {
	var acc uint64
	have := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		n := int(huffLens[c])
		acc = acc<<n | uint64(huffCodes[c])
		if have += n; have >= 32 {
			have -= 32
			v := uint32(acc >> have)
			dst = append(dst, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
		}
	}
	for have >= 8 {
		have -= 8
		dst = append(dst, byte(acc>>have))
	}
	if have > 0 {
		dst = append(dst, byte(acc<<(8-have))|0xff>>have)
	}
	return dst
}
