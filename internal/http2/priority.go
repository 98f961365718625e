package http2

import (
	"encoding/binary"
	"math"

	"github.com/chert-http/chert/internal/priority"
)

var (
	errUpdateStream = &ConnError{ProtocolError, "PRIORITY_UPDATE of a stream that requests cannot have"}
	errUpdateSize   = &ConnError{FrameSizeError, "PRIORITY_UPDATE is too short"}
)

// PriorityUpdate is the payload of a PRIORITY_UPDATE frame (RFC 9218 section 7.1).
func (h Header) PriorityUpdate(p []byte) (stream uint32, _ priority.Priority, _ error) {
	if len(p) < 4 {
		return 0, priority.Priority{}, errUpdateSize
	}
	stream = binary.BigEndian.Uint32(p) & math.MaxInt32
	if h.Stream != 0 || stream%2 == 0 {
		return 0, priority.Priority{}, errUpdateStream
	}
	return stream, priority.Parse(p[4:]), nil
}
