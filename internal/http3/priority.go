package http3

import "github.com/chert-http/chert/internal/priority"

var errUpdateStream = &ConnError{IDError, "PRIORITY_UPDATE of a stream that requests cannot have"}

// ParsePriorityUpdate parses the payload of a PRIORITY_UPDATE frame for a request (RFC 9218 section
// 7.2). Whether the client may have begun the stream is not judged. An error is a ConnError.
func ParsePriorityUpdate(p []byte) (stream uint64, _ priority.Priority, _ error) {
	stream, n := Varint(p)
	if n == 0 {
		return 0, priority.Priority{}, errFrameSize
	}
	// RFC 9000 section 2.1: the two lowest bits of those that clients begin, for both
	// directions, are 0.
	if stream&3 != 0 {
		return 0, priority.Priority{}, errUpdateStream
	}
	return stream, priority.Parse(p[n:]), nil
}
