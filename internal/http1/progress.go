package http1

import "bytes"

// Progress is what is known of a head or trailer section that is not complete.
// It belongs to the connection; the zero value is a fresh start, and a parser
// sets it back to that with any answer but "need more". Between two calls the
// buffer may move and grow, but must still begin with the same bytes.
type Progress struct {
	scanned uint32 // no complete line is left unjudged before this offset
	fields  uint32 // field lines judged
}

// wait looks at the bytes that are new since the last call. It returns true
// when they complete no line, or only lines that are right: the section is
// still incomplete and a parse would say no more. On false the caller parses
// from the start, and that answer counts.
//
// Each byte is looked at a fixed number of times however it came, so n bytes
// that come one at a time cost O(n).
func (p *Progress) wait(b []byte, maxFields int, requestLine bool) bool {
	// What leadingCRLF judges lies within the first bytes.
	if p.scanned < maxLeading+1 || int(p.scanned) > len(b) {
		return false
	}
	for {
		i := bytes.IndexByte(b[p.scanned:], '\n')
		if i < 0 {
			p.scanned = uint32(len(b))
			return true
		}
		end := int(p.scanned) + i + 1
		start := bytes.LastIndexByte(b[:end-1], '\n') + 1
		if requestLine && start <= maxLeading && leading(b[:start]) {
			var r Request
			if next, _ := r.requestLine(b[:end], start); next == 0 {
				return false
			}
		} else {
			// The empty line is no field either, so it ends the wait.
			var f Field
			next, _ := f.parse(b[:end], start)
			if next == 0 || int(p.fields) >= maxFields {
				return false
			}
			p.fields++
		}
		p.scanned = uint32(end)
	}
}

// leading reports whether b is empty lines and nothing else.
func leading(b []byte) bool {
	return len(bytes.TrimLeft(b, "\r\n")) == 0
}

// refuse returns e if the line around b[i] is complete, and nil (need more)
// otherwise. Every refusal of a line goes through here, so that it does not
// depend on how the bytes were split.
func refuse(b []byte, i int, e *Error) *Error {
	if bytes.IndexByte(b[i:], '\n') < 0 {
		return nil
	}
	return e
}
