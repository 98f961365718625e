package http2

import (
	"bytes"
	"encoding/binary"
	"math"
)

// Priority is what a client has said of how urgent a response is (RFC 9218 section 4).
type Priority struct {
	Urgency     uint8 // 0 to 7; lower is sooner
	Incremental bool  // parts of the response are of use
}

// DefaultPriority is that of a request without one.
var DefaultPriority = Priority{Urgency: 3}

// ParsePriority parses the value of a priority field. Of what is unknown or invalid it
// takes the default.
func ParsePriority(v []byte) Priority {
	p := DefaultPriority
	for len(v) > 0 {
		var member []byte
		member, v, _ = bytes.Cut(v, []byte{','})
		member, _, _ = bytes.Cut(member, []byte{';'}) // parameters
		key, value, has := bytes.Cut(bytes.Trim(member, " \t"), []byte{'='})
		switch string(key) {
		case "u":
			if len(value) == 1 && '0' <= value[0] && value[0] <= '7' {
				p.Urgency = value[0] - '0'
			}
		case "i":
			p.Incremental = !has || string(value) == "?1"
		}
	}
	return p
}

var (
	errUpdateStream = &ConnError{ProtocolError, "PRIORITY_UPDATE of a stream that requests cannot have"}
	errUpdateSize   = &ConnError{FrameSizeError, "PRIORITY_UPDATE is too short"}
)

// PriorityUpdate is the payload of a PRIORITY_UPDATE frame (RFC 9218 section 7.1).
func (h Header) PriorityUpdate(p []byte) (stream uint32, _ Priority, _ error) {
	if len(p) < 4 {
		return 0, Priority{}, errUpdateSize
	}
	stream = binary.BigEndian.Uint32(p) & math.MaxInt32
	if h.Stream != 0 || stream%2 == 0 {
		return 0, Priority{}, errUpdateStream
	}
	return stream, ParsePriority(p[4:]), nil
}
