package eventstream

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// An Event is what a client receives.
type Event struct {
	// ID is what a client that connects again sends as Last-Event-ID. Topics give events
	// without one an ID of their own. It must not contain CR, LF or NUL.
	ID string
	// Type is the type of the event that a browser dispatches, "message" if it is empty.
	// It must not contain CR, LF or NUL.
	Type string
	// Data is the content, of any length. Line ends in it, which may be CR, LF or both,
	// arrive as LF. An event with neither Data nor Type is dispatched only if it has no ID
	// and no Retry either; otherwise it just tells the client these.
	Data string
	// Retry, if not 0, is how long a client is to wait before it connects again, in
	// milliseconds on the wire.
	Retry time.Duration
}

// ErrField is wrapped by the errors of events with a field that would end its line, and
// so could be used to forge other fields or events.
var ErrField = errors.New("eventstream: a field with CR, LF or NUL")

func (e *Event) check() error {
	for _, f := range [...]struct{ name, value string }{{"ID", e.ID}, {"Type", e.Type}} {
		if strings.ContainsAny(f.value, "\r\n\x00") {
			return fmt.Errorf("%w: %s %q", ErrField, f.name, f.value)
		}
	}
	return nil
}

// append appends the event's lines and the empty one that ends it (WHATWG HTML section
// 9.2.5).
func (e *Event) append(b []byte) []byte {
	if e.Retry > 0 {
		b = append(b, "retry: "...)
		b = strconv.AppendInt(b, max(e.Retry.Milliseconds(), 1), 10)
		b = append(b, '\n')
	}
	if e.ID != "" {
		b = appendLine(b, "id: ", e.ID)
	}
	if e.Type != "" {
		b = appendLine(b, "event: ", e.Type)
	}
	// Without a data line nothing is dispatched.
	if e.Data != "" || e.Type != "" || e.ID == "" && e.Retry <= 0 {
		b = appendData(b, e.Data)
	}
	return append(b, '\n')
}

func appendLine(b []byte, name, value string) []byte {
	return append(append(append(b, name...), value...), '\n')
}

// appendData appends a field for each line of data.
func appendData(b []byte, data string) []byte {
	for {
		line, rest, more := data, "", false
		if i := strings.IndexAny(data, "\r\n"); i >= 0 {
			line, rest, more = data[:i], data[i+1:], true
			if data[i] == '\r' {
				rest = strings.TrimPrefix(rest, "\n")
			}
		}
		b = appendLine(b, "data: ", line)
		if data = rest; !more {
			return b
		}
	}
}

// A frame is what is sent of one event, for all receivers: the bytes as they are, within
// the chunk that they are for those whose responses are chunked (RFC 9112 section 7.1).
// It is immutable.
type frame struct {
	b          []byte
	start, end int // of the bytes as they are
}

// maxSize is room for the size of a chunk and its CRLF.
const maxSize = 16 + 2

// newFrame makes a frame of what f appends.
func newFrame(size int, f func(b []byte) []byte) frame {
	b := f(make([]byte, maxSize, maxSize+size+2))
	var few [maxSize]byte
	head := append(strconv.AppendInt(few[:0], int64(len(b)-maxSize), 16), "\r\n"...)
	from := maxSize - len(head)
	copy(b[from:], head)
	return frame{append(b, "\r\n"...)[from:], len(head), len(head) + len(b) - maxSize}
}

// frame makes the frame of an event that has been checked.
func (e *Event) frame() frame {
	return newFrame(len(e.ID)+len(e.Type)+len(e.Data)+64, e.append)
}

// size is the number of bytes as they are.
func (f *frame) size() int { return f.end - f.start }

// bytes returns what is to be sent.
func (f *frame) bytes(chunked bool) []byte {
	if chunked {
		return f.b
	}
	return f.b[f.start:f.end]
}

// lastChunk ends a chunked body.
var lastChunk = []byte("0\r\n\r\n")

// beat is a comment, for proxies that end what is silent.
var (
	beat   = newFrame(3, func(b []byte) []byte { return append(b, ":\n\n"...) })
	beatGz = newPiece(beat.bytes(false), nil)
)
