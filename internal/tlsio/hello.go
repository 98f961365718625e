package tlsio

import "encoding/binary"

// The record layer, RFC 8446 section 5.1.
const (
	headerSize      = 5
	maxPlain        = 1 << 14
	maxCipher       = maxPlain + 2048 // of TLS 1.2, which is more than 1.3 allows
	recordAlert     = 21
	recordHandshake = 22
)

const (
	// maxHello is the longest message that crypto/tls accepts here.
	maxHello = 65536
	// maxFlight bounds what is kept of a client's first flight: a ClientHello of any length
	// that was squeezed, and part of a record.
	maxFlight = 128 << 10
	// maxWaste is what headers and warnings may take before they are squeezed out, or half
	// of the message if that is more.
	maxWaste = 4 << 10
	// maxWarnings is how many records crypto/tls ignores in a row.
	maxWarnings = 16
)

// verdict is what is known of a client's first bytes.
type verdict uint8

const (
	incomplete verdict = iota // crypto/tls would wait for more
	complete                  // the whole ClientHello is there
	hopeless                  // crypto/tls would refuse without waiting
)

// hello looks for the end of a ClientHello. Each call of scan gets all bytes so
// far and goes on where the last one has ended.
type hello struct {
	at       int // where the next record begins
	warnings int // in a row
	have     int // bytes of the message
	head     [4]byte
}

// scan judges as crypto/tls would. RFC 8446 section 4: a message begins with its
// type and a length of three bytes; section 5.1: it may span records.
func (h *hello) scan(b []byte) verdict {
	for {
		r := b[h.at:]
		if len(r) < headerSize {
			return incomplete
		}
		kind, version := r[0], binary.BigEndian.Uint16(r[1:])
		n := int(binary.BigEndian.Uint16(r[3:]))
		if kind != recordAlert && kind != recordHandshake || version >= 0x1000 || n > maxCipher {
			return hopeless
		}
		if len(r) < headerSize+n {
			return incomplete
		}
		h.at += headerSize + n
		if v := h.record(kind, r[headerSize:headerSize+n]); v != incomplete {
			return v
		}
	}
}

// wasteful reports whether squeeze is worth its copies: a record may have one byte, and
// takes six then.
func (h *hello) wasteful() bool {
	waste := h.at - h.have
	return waste > maxWaste && waste > h.have/2
}

// squeeze joins the records at the beginning of b that scan has seen, drops warnings that
// crypto/tls would ignore, and returns a copy of the result, for the next call of scan. The
// last warnings stay, since crypto/tls counts them.
func (h *hello) squeeze(b []byte) []byte {
	seen := h.at - h.warnings*(headerSize+2)
	out := make([]byte, 0, h.have+headerSize*(1+h.have/maxPlain)+len(b)-seen)
	last := 0 // where the last record of out begins
	for r := b[:seen]; len(r) > 0; {
		n := int(binary.BigEndian.Uint16(r[3:]))
		p := r[headerSize : headerSize+n]
		for r[0] == recordHandshake && len(p) > 0 {
			if have := len(out) - last - headerSize; len(out) == 0 || have == maxPlain {
				last = len(out)
				out = append(out, b[0], b[1], b[2], 0, 0)
				out[last] = recordHandshake
			}
			k := min(len(p), maxPlain-(len(out)-last-headerSize))
			out = append(out, p[:k]...)
			p = p[k:]
			binary.BigEndian.PutUint16(out[last+3:], uint16(len(out)-last-headerSize))
		}
		r = r[headerSize+n:]
	}
	h.at += len(out) - seen
	return append(out, b[seen:]...)
}

// record takes the content of one record.
func (h *hello) record(kind byte, p []byte) verdict {
	const warning, closeNotify = 1, 0
	if kind == recordAlert {
		if h.warnings++; len(p) != 2 || p[0] != warning || p[1] == closeNotify || h.warnings > maxWarnings {
			return hopeless
		}
		return incomplete
	}
	if len(p) == 0 || len(p) > maxPlain {
		return hopeless
	}
	h.warnings = 0
	if h.have < len(h.head) {
		copy(h.head[h.have:], p)
	}
	if h.have += len(p); h.have < len(h.head) {
		return incomplete
	}
	size := int(binary.BigEndian.Uint32(h.head[:]) & 0xffffff)
	switch {
	case size > maxHello:
		return hopeless
	case h.have < len(h.head)+size:
		return incomplete
	case h.head[0] != 1: // client_hello
		return hopeless
	}
	return complete
}

// whole is the size of the record that b begins with: 0 if it is not all there.
// Of one that crypto/tls refuses because of its header, that is enough.
func whole(b []byte) int {
	switch {
	case len(b) < headerSize:
		return 0
	case refused(b):
		return headerSize
	}
	n := headerSize + int(binary.BigEndian.Uint16(b[3:]))
	if len(b) < n {
		return 0
	}
	return n
}

// refused reports whether the header b is of a record that is too long, or of no
// version of TLS, such as the beginning of an HTTP request.
func refused(b []byte) bool { return b[1] != 3 || binary.BigEndian.Uint16(b[3:]) > maxCipher }
