package http2

import "encoding/binary"

// Preface is what a client sends first (RFC 9113 section 3.4).
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// FrameType is the type of a frame.
type FrameType uint8

const (
	FrameData FrameType = iota
	FrameHeaders
	FramePriority
	FrameRSTStream
	FrameSettings
	FramePushPromise
	FramePing
	FrameGoAway
	FrameWindowUpdate
	FrameContinuation
	// FramePriorityUpdate is of RFC 9218 section 7.1.
	FramePriorityUpdate FrameType = 0x10
)

// Flags of frames. Which frames have which is in RFC 9113 section 6.
const (
	FlagEndStream  uint8 = 0x1
	FlagAck        uint8 = 0x1
	FlagEndHeaders uint8 = 0x4
	FlagPadded     uint8 = 0x8
	FlagPriority   uint8 = 0x20
)

const (
	// HeaderLen is the length of a frame's header.
	HeaderLen = 9
	// MinFrameSize is what SETTINGS_MAX_FRAME_SIZE is at first and at least, and
	// MaxFrameSize what it is at most.
	MinFrameSize = 1 << 14
	MaxFrameSize = 1<<24 - 1
	// MaxStreamID is the largest identifier of a stream.
	MaxStreamID = 1<<31 - 1
)

// Header is a frame's header (RFC 9113 section 4.1).
type Header struct {
	Length uint32
	Type   FrameType
	Flags  uint8
	Stream uint32
}

// Has reports whether a flag is set.
func (h Header) Has(flag uint8) bool { return h.Flags&flag != 0 }

// ParseHeader parses the header at the start of b, which has HeaderLen bytes at
// least.
func ParseHeader(b []byte) Header {
	_ = b[8]
	return Header{
		Length: uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]),
		Type:   FrameType(b[3]), Flags: b[4],
		Stream: binary.BigEndian.Uint32(b[5:]) & MaxStreamID,
	}
}

// ErrTooLarge is the error of a frame that is larger than SETTINGS_MAX_FRAME_SIZE (RFC 9113 section 4.2).
var ErrTooLarge = &ConnError{FrameSizeError, "a frame is larger than was announced"}

var (
	errFixedSize    = &ConnError{FrameSizeError, "a frame has not the size of its type"}
	errSettingsSize = &ConnError{FrameSizeError, "SETTINGS of a size that they cannot have"}
	errNoStream     = &ConnError{ProtocolError, "a frame of a stream is sent on none"}
	errOnStream     = &ConnError{ProtocolError, "a frame of the connection is sent on a stream"}
	errPush         = &ConnError{ProtocolError, "a client sends PUSH_PROMISE"}
	errPadding      = &ConnError{ProtocolError, "the padding is longer than the frame"}
	errShort        = &ConnError{FrameSizeError, "a frame is shorter than what it must have"}
	errPriority     = &StreamError{FrameSizeError, "PRIORITY of another size than 5"}
	errSelf         = &StreamError{ProtocolError, "a stream depends on itself"}
	errNoIncrement  = &StreamError{ProtocolError, "WINDOW_UPDATE of 0"}
	errNoIncrement0 = &ConnError{ProtocolError, "WINDOW_UPDATE of 0"}
)

// Check judges what can be told from the header of a frame that a client has sent,
// before its payload has come: its size, of max bytes at most, and whether it
// belongs to a stream (RFC 9113 sections 4.2 and 6). Frames of unknown type pass.
func (h Header) Check(max uint32) error {
	if h.Length > max {
		return ErrTooLarge
	}
	switch h.Type {
	case FrameData, FrameHeaders, FrameContinuation, FramePriority, FrameRSTStream:
		if h.Stream == 0 {
			return errNoStream
		}
		if h.Type == FrameRSTStream && h.Length != 4 {
			return errFixedSize
		}
	case FrameSettings, FramePing, FrameGoAway:
		if h.Stream != 0 {
			return errOnStream
		}
		return h.checkConn()
	case FramePushPromise:
		return errPush
	case FrameWindowUpdate:
		if h.Length != 4 {
			return errFixedSize
		}
	}
	return nil
}

// checkConn checks the size of a frame of the connection.
func (h Header) checkConn() error {
	switch {
	case h.Type == FrameSettings && (h.Length%6 != 0 || h.Has(FlagAck) && h.Length != 0):
		return errSettingsSize
	case h.Type == FramePing && h.Length != 8:
		return errFixedSize
	case h.Type == FrameGoAway && h.Length < 8:
		return errShort
	}
	return nil
}

// Content is the payload p of a DATA or HEADERS frame without padding (RFC 9113
// sections 6.1 and 6.2) and, of HEADERS, without the priority. A StreamError for
// HEADERS comes with the content, which is to be decoded all the same.
func (h Header) Content(p []byte) ([]byte, error) {
	if h.Has(FlagPadded) {
		if len(p) == 0 {
			return nil, errShort
		}
		pad := int(p[0])
		if p = p[1:]; pad > len(p) {
			return nil, errPadding
		}
		p = p[:len(p)-pad]
	}
	if h.Type != FrameHeaders || !h.Has(FlagPriority) {
		return p, nil
	}
	if len(p) < 5 {
		return nil, errShort
	}
	return p[5:], h.dependency(p)
}

// CheckPriority judges the payload of a PRIORITY frame, of which nothing else is
// used: RFC 9113 section 5.3.2 deprecates it.
func (h Header) CheckPriority(p []byte) error {
	if len(p) != 5 {
		return errPriority
	}
	return h.dependency(p)
}

func (h Header) dependency(p []byte) error {
	if binary.BigEndian.Uint32(p)&MaxStreamID == h.Stream {
		return errSelf
	}
	return nil
}

// Increment is the payload of WINDOW_UPDATE (RFC 9113 section 6.9).
func (h Header) Increment(p []byte) (uint32, error) {
	n := binary.BigEndian.Uint32(p) & MaxStreamID
	switch {
	case n > 0:
		return n, nil
	case h.Stream == 0:
		return 0, errNoIncrement0
	}
	return 0, errNoIncrement
}

// AppendHeader appends a frame's header.
func AppendHeader(b []byte, t FrameType, flags uint8, stream uint32, length int) []byte {
	return append(b, byte(length>>16), byte(length>>8), byte(length), byte(t), flags,
		byte(stream>>24), byte(stream>>16), byte(stream>>8), byte(stream))
}

// AppendBlock appends a header block as HEADERS and, if it is larger than max, as
// CONTINUATION frames.
func AppendBlock(b []byte, stream uint32, block []byte, max int, endStream bool) []byte {
	t, flags := FrameHeaders, uint8(0)
	if endStream {
		flags = FlagEndStream
	}
	for {
		n := min(len(block), max)
		if n == len(block) {
			flags |= FlagEndHeaders
		}
		b = append(AppendHeader(b, t, flags, stream, n), block[:n]...)
		if block = block[n:]; len(block) == 0 {
			return b
		}
		t, flags = FrameContinuation, 0
	}
}

// AppendRST appends a RST_STREAM frame.
func AppendRST(b []byte, stream uint32, code ErrCode) []byte {
	return binary.BigEndian.AppendUint32(AppendHeader(b, FrameRSTStream, 0, stream, 4), uint32(code))
}

// AppendWindowUpdate appends a WINDOW_UPDATE frame; stream 0 is the connection.
func AppendWindowUpdate(b []byte, stream, n uint32) []byte {
	return binary.BigEndian.AppendUint32(AppendHeader(b, FrameWindowUpdate, 0, stream, 4), n)
}

// AppendPing appends a PING frame with 8 bytes of data.
func AppendPing(b []byte, ack bool, data []byte) []byte {
	flags := uint8(0)
	if ack {
		flags = FlagAck
	}
	return append(AppendHeader(b, FramePing, flags, 0, 8), data[:8]...)
}

// AppendGoAway appends a GOAWAY frame.
func AppendGoAway(b []byte, last uint32, code ErrCode, debug string) []byte {
	b = AppendHeader(b, FrameGoAway, 0, 0, 8+len(debug))
	b = binary.BigEndian.AppendUint32(b, last)
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	return append(b, debug...)
}
