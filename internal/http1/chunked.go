package http1

import "math"

// Chunked decodes the chunked transfer coding (RFC 9112 section 7.1). The zero
// value is at the start of a body. It is a small value and may be copied.
type Chunked struct {
	left   uint64 // chunk size so far; within the data, the rest of it
	excess uint32 // bytes of overhead beyond what is allowed for each chunk
	line   uint16 // bytes of the chunk line so far
	digits uint8  // of the chunk size so far
	state  chunkState
}

type chunkState uint8

const (
	chunkSize      chunkState = iota // 1*HEXDIG
	chunkSizeSpace                   // whitespace after the size: only ";" may follow
	chunkExtStart                    // after ";"
	chunkExtName
	chunkExtNameSpace // whitespace after the name: only "=" or ";"
	chunkExtEqual     // after "="
	chunkExtToken
	chunkExtQuoted
	chunkExtEscape // after "\" in a quoted string
	chunkExtQuoteEnd
	chunkExtSpace // whitespace after a value: only ";"
	chunkLineLF   // CR seen
	chunkData
	chunkDataCR
	chunkDataLF
	chunkDone
)

const (
	// maxChunkLine is for size, extensions and CRLF.
	maxChunkLine = 4096
	// The overhead allowed per chunk: enough for a sender that sends a byte at a
	// time with a short extension, plus twice its data. Overhead beyond that may
	// add up to maxChunkExcess, otherwise a sender could make the server read
	// far more than the handler receives.
	chunkAllowance = 16
	maxChunkExcess = 16 << 10
)

// Left returns how many bytes of data remain in the current chunk, 0 outside the
// data of a chunk.
func (c *Chunked) Left() uint64 {
	if c.state != chunkData {
		return 0
	}
	return c.left
}

// Decode reads from src until it ends, or until dst is full and data follows. n
// bytes of body are now in dst, used of src were read. dst may begin where src
// begins: the decoded data is never longer.
//
// done: the last chunk's line was read; the trailer section begins at src[used:]
// and is passed to ParseTrailer. Neither done nor an error and used == len(src):
// need more. After an error the rest of the body cannot be read.
func (c *Chunked) Decode(dst, src []byte) (n, used int, done bool, err error) {
	for used < len(src) {
		switch c.state {
		case chunkData:
			rest := min(uint64(len(src)-used), c.left)
			k := copy(dst[n:], src[used:used+int(rest)])
			n, used = n+k, used+k
			if c.left -= uint64(k); c.left > 0 {
				return n, used, false, nil // one of them has been used up
			}
			c.state = chunkDataCR
			continue
		case chunkDataCR:
			// RFC 9112 section 7.1: the data ends in CRLF, nothing else.
			// Skipping other bytes would move the next chunk's start.
			if src[used] != '\r' {
				return n, used, false, errChunkEnd
			}
			c.state = chunkDataLF
		case chunkDataLF:
			if src[used] != '\n' {
				return n, used, false, errChunkEnd
			}
			c.state = chunkSize
		case chunkDone:
			return n, used, true, nil
		default:
			if e := c.lineByte(src[used]); e != nil {
				return n, used, false, e
			}
		}
		used++
	}
	return n, used, c.state == chunkDone, nil
}

// lineByte processes the next byte of a chunk line:
//
//	chunk-size *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ) CRLF
//
// Extensions are ignored (RFC 9112 section 7.1.1: unknown ones must be
// ignored), but a recipient that is not strict about them may find the end of
// the line elsewhere than another does.
func (c *Chunked) lineByte(b byte) *Error {
	if c.line++; c.line > maxChunkLine {
		return ErrChunkLine
	}
	switch c.state {
	case chunkSize:
		return c.sizeByte(b)
	case chunkLineLF:
		if b != '\n' {
			return errBareCR
		}
		return c.endLine()
	case chunkExtQuoted:
		switch {
		case b == '"':
			c.state = chunkExtQuoteEnd
		case b == '\\':
			c.state = chunkExtEscape
		case class[b]&inQuoted == 0:
			return errChunkExt
		}
	case chunkExtEscape:
		// RFC 9110 section 5.6.4: quoted-pair.
		if class[b]&inValue == 0 {
			return errChunkExt
		}
		c.state = chunkExtQuoted
	default:
		next := chunkNext(c.state, b)
		if next == chunkSize {
			return errChunkExt
		}
		c.state = next
	}
	return nil
}

// chunkNext is the grammar of extensions outside quoted strings: the state that
// byte b leads to, chunkSize if b is not allowed.
func chunkNext(s chunkState, b byte) chunkState {
	switch {
	case isOWS(b):
		switch s {
		case chunkExtName:
			return chunkExtNameSpace
		case chunkExtToken, chunkExtQuoteEnd:
			return chunkExtSpace
		}
		return s
	case b == ';' && s != chunkExtStart && s != chunkExtEqual:
		return chunkExtStart
	case b == '=' && (s == chunkExtName || s == chunkExtNameSpace):
		return chunkExtEqual
	case b == '"' && s == chunkExtEqual:
		return chunkExtQuoted
	case b == '\r' && (s == chunkExtName || s == chunkExtToken || s == chunkExtQuoteEnd):
		return chunkLineLF
	case class[b]&inToken != 0:
		switch s {
		case chunkExtStart, chunkExtName:
			return chunkExtName
		case chunkExtEqual, chunkExtToken:
			return chunkExtToken
		}
	}
	return chunkSize
}

func (c *Chunked) sizeByte(b byte) *Error {
	if v := hexValue(b); v < 16 {
		// An int64 needs at most sixteen digits; more would be leading zeros.
		if c.digits++; c.digits > 16 || c.left > math.MaxInt64>>4 {
			return errChunkTooLarge
		}
		c.left = c.left<<4 | uint64(v)
		return nil
	}
	// RFC 9112 section 7.1: 1*HEXDIG; no sign, no prefix, no space.
	if c.digits == 0 {
		return errChunkSize
	}
	switch {
	case b == '\r':
		c.state = chunkLineLF
	case b == ';':
		c.state = chunkExtStart
	case isOWS(b):
		c.state = chunkSizeSpace
	default:
		return errChunkSize
	}
	return nil
}

func hexValue(b byte) byte {
	switch {
	case isDigit(b):
		return b - '0'
	case isHex(b):
		return (b | 0x20) - 'a' + 10
	}
	return 16
}

// endLine counts the overhead of a complete chunk line as net/http does, and
// proceeds to the data.
func (c *Chunked) endLine() *Error {
	allowed := chunkAllowance + 2*min(c.left, maxChunkExcess)
	// The line's own CRLF counts for the one after the data.
	excess := uint64(c.excess) + uint64(c.line)
	excess -= min(excess, allowed)
	if excess > maxChunkExcess {
		return errChunkExcess
	}
	c.excess = uint32(excess)
	c.line, c.digits = 0, 0
	c.state = chunkData
	if c.left == 0 {
		c.state = chunkDone
	}
	return nil
}
