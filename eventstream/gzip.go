package eventstream

import (
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"strings"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/rfc/coding"
	"github.com/chert-http/chert/internal/rfc/field"
	"github.com/chert-http/chert/internal/wsdeflate"
)

// This file compresses. The body of a compressed stream is one member of gzip (RFC 1952):
// a header, pieces, and an end. A piece is made once for all clients that get it. It ends
// at a byte, with an empty block by which decoders recognize a flush, and refers either to
// nothing before it or only to bytes that all its receivers have got just before. So a
// client that is silent has no compressor, only a checksum, a length and what is known of
// the last bytes that it has got.

const (
	gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
	// flushed is an empty stored block, after which decoders return what they have: Go's
	// does so for no other.
	flushed = "\x00\x00\xff\xff"
	// gzipEnd is an empty last block. CRC-32 and length follow.
	gzipEnd = "\x03\x00"

	// windowBits is the size of what a piece may refer to before it, as a power of two.
	windowBits = 12
	// short is the length below which nothing is gained without bytes to refer to.
	short = 128
	// maxStored is the longest stored block (RFC 1951 section 3.2.4).
	maxStored = 1<<16 - 1
)

// A piece is a part of a gzip stream. It is immutable.
type piece struct {
	frame
	// crc is the checksum of the n bytes that it decodes to, and shift what the checksum
	// of the bytes before is multiplied by.
	crc, shift, n uint32
}

// newPiece compresses plain. It refers to the bytes of w, if it is not nil.
func newPiece(plain []byte, w *wsdeflate.Window) *piece {
	scratch := buf.Get(len(plain) + 5*(len(plain)/maxStored+2))
	defer scratch.Release()
	z := appendDeflated(scratch.B, plain, w)
	return &piece{
		frame: newFrame(len(z), func(b []byte) []byte { return append(b, z...) }), // it may be kept
		crc:   crc32.ChecksumIEEE(plain), shift: crcShift(len(plain)), n: uint32(len(plain)),
	}
}

func appendDeflated(b, plain []byte, w *wsdeflate.Window) []byte {
	start := len(b)
	if w.Len() > 0 {
		b = wsdeflate.Deflate(b, plain, w, windowBits)
	} else if len(plain) >= short {
		b = wsdeflate.Deflate(b, plain, nil, wsdeflate.MaxBits)
	}
	stored := len(plain) + 5*(len(plain)/maxStored+1)
	if n := len(b) - start; n > 0 && n < stored {
		return append(b, flushed...)
	}
	b = b[:start]
	for len(plain) > 0 {
		n := min(len(plain), maxStored)
		b = append(b, 0)
		b = binary.LittleEndian.AppendUint16(b, uint16(n))
		b = binary.LittleEndian.AppendUint16(b, ^uint16(n))
		b = append(b, plain[:n]...)
		plain = plain[n:]
	}
	return append(append(b, 0), flushed...)
}

// useful returns w if plain is to be compressed with it: what is larger than its window is
// better compressed with a larger one.
func useful(w *wsdeflate.Window, plain []byte) *wsdeflate.Window {
	if len(plain) > 1<<windowBits {
		return nil
	}
	return w
}

// zipped is the state of a compressed stream.
type zipped struct {
	crc, n uint32 // of all bytes before compression
	// run is how many of the last bytes are those that the topic of from has before
	// from.next. Where others have been sent it is 0 and from is nil.
	run  uint32
	from *subscription
	// window is the last bytes if Stream.Send has sent them. A heartbeat drops it.
	window *wsdeflate.Window
}

// add notes that p has been sent, of a topic if from is not nil.
func (z *zipped) add(p *piece, from *subscription) {
	z.crc = crcMul(p.shift, z.crc) ^ p.crc
	z.n += p.n
	switch {
	case from == nil:
		z.run = 0
	case from != z.from:
		z.run = p.n
	default:
		z.run = min(z.run, 1<<windowBits) + min(p.n, 1<<windowBits)
	}
	z.from, z.window = from, nil
}

// addOwn notes that plain has been sent by Stream.Send, as p, with window.
func (z *zipped) addOwn(p *piece, plain []byte, window *wsdeflate.Window) {
	z.add(p, nil)
	if window == nil {
		window = new(wsdeflate.Window)
	}
	window.Add(plain, windowBits)
	z.window = window
}

// end returns the end of the stream.
func (z *zipped) end() frame {
	return newFrame(16, func(b []byte) []byte {
		b = binary.LittleEndian.AppendUint32(append(b, gzipEnd...), z.crc)
		return binary.LittleEndian.AppendUint32(b, z.n)
	})
}

// crcMul multiplies two polynomials modulo that of CRC-32, all of them reflected.
func crcMul(a, b uint32) (p uint32) {
	for ; a != 0; a <<= 1 {
		p ^= b & uint32(int32(a)>>31)
		b = b>>1 ^ crc32.IEEE&-(b&1)
	}
	return p
}

// crcPowers has x^(8*2^i).
var crcPowers = func() (t [32]uint32) {
	t[0] = 1 << (31 - 8)
	for i := 1; i < len(t); i++ {
		t[i] = crcMul(t[i-1], t[i-1])
	}
	return t
}()

// crcShift returns x^(8*n): the checksum of a and n bytes b is that of a multiplied by it,
// plus that of b.
func crcShift(n int) uint32 {
	p := uint32(1 << 31)
	for i := 0; n > 0; n, i = n>>1, i+1 {
		if n&1 != 0 {
			p = crcMul(p, crcPowers[i%32])
		}
	}
	return p
}

// acceptsGzip reports whether the client of a request prefers gzip to no coding, and adds
// to the response's fields that it matters.
func acceptsGzip(head http.Header, r *http.Request) bool {
	if vary := strings.Join(head["Vary"], ","); !field.HasToken(vary, "*") && !field.HasToken(vary, "Accept-Encoding") {
		head.Add("Vary", "Accept-Encoding")
	}
	c, _ := coding.Choose([]byte(strings.Join(r.Header["Accept-Encoding"], ",")), coding.Set(0).With(coding.Gzip), nil)
	return c == coding.Gzip
}
