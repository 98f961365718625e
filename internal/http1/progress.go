package http1

import "bytes"

// Progress is the state of an incomplete head or trailer section. It belongs to
// the connection; the zero value is a fresh start, and a parser resets it with
// any result but "need more". Between two calls the buffer may move and grow,
// but must still begin with the same bytes.
type Progress struct {
	scanned uint32 // all complete lines before this offset have been validated
	fields  uint32 // field lines validated
}

// wait examines the bytes that are new since the last call. It returns true if
// they complete no line, or only valid lines: the section is still incomplete
// and a parse would report no more. On false the caller parses from the start,
// and that result counts.
//
// Each byte is examined a fixed number of times however it arrives, so n bytes
// that arrive one at a time cost O(n).
func (p *Progress) wait(b []byte, maxFields int, requestLine bool) bool {
	// What leadingCRLF validates lies within the first bytes.
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
