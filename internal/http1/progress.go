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
func (p *Progress) wait(b []byte, maxFields int, first startLine) bool {
	// What is validated immediately lies within the first bytes.
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
		if first != noStartLine && start <= maxLeading && leading(b[:start]) {
			if !first.valid(b[:end], start) {
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

// answer is what a parser returns for n and e, which are 0 and nil for "need
// more". It resets p with any other result.
func (p *Progress) answer(n int, e *Error) (int, error) {
	if n == 0 && e == nil {
		return 0, nil
	}
	*p = Progress{}
	if e != nil {
		return 0, e
	}
	return n, nil
}

// startLine is what precedes a field section.
type startLine uint8

const (
	noStartLine startLine = iota // of a trailer section
	requestStart
	statusStart
)

// valid reports whether the complete line b[i:] is a valid one.
func (l startLine) valid(b []byte, i int) bool {
	next := 0
	if l == statusStart {
		var r Response
		next, _ = r.statusLine(b, i)
	} else {
		var r Request
		next, _ = r.requestLine(b, i)
	}
	return next > 0
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
