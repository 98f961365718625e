package http3

// FrameType is the type of a frame (RFC 9114 section 7.2).
type FrameType uint64

const (
	FrameData        FrameType = 0x0
	FrameHeaders     FrameType = 0x1
	FrameCancelPush  FrameType = 0x3
	FrameSettings    FrameType = 0x4
	FramePushPromise FrameType = 0x5
	FrameGoAway      FrameType = 0x7
	FrameMaxPushID   FrameType = 0xd
	// FramePriorityUpdate is of RFC 9218 section 7.2, for a request. That for a push has
	// the type after it.
	FramePriorityUpdate     FrameType = 0xf0700
	FramePriorityUpdatePush FrameType = 0xf0701
)

// StreamType is the type of a unidirectional stream, an integer at its beginning (RFC 9114
// section 6.2, RFC 9204 section 4.2). Streams of other types are not read (section 6.2.3).
type StreamType uint64

const (
	StreamControl StreamType = iota
	StreamPush
	StreamQPACKEncoder
	StreamQPACKDecoder
)

// Header is a frame's header (RFC 9114 section 7.1).
type Header struct {
	Type   FrameType
	Length uint64
}

// Known reports whether the frame has a meaning. Others are passed over, wherever they are
// (RFC 9114 section 9).
func (h Header) Known() bool {
	switch h.Type {
	case FrameData, FrameHeaders, FrameCancelPush, FrameSettings, FramePushPromise, FrameGoAway, FrameMaxPushID,
		FramePriorityUpdate, FramePriorityUpdatePush:
		return true
	}
	return false
}

var (
	errSecond       = &ConnError{FrameUnexpected, "SETTINGS for the second time"}
	errNotFirst     = &ConnError{MissingSettings, "the control stream does not begin with SETTINGS"}
	errHTTP2Frame   = &ConnError{FrameUnexpected, "a frame of HTTP/2"}
	errOnRequest    = &ConnError{FrameUnexpected, "a frame of the control stream on that of a request"}
	errPush         = &ConnError{FrameUnexpected, "a client sends PUSH_PROMISE"}
	errOnControl    = &ConnError{FrameUnexpected, "a frame of requests on the control stream"}
	errNoPush       = &ConnError{IDError, "a server that has promised nothing gets a frame about a push"}
	errControlLarge = &ConnError{ExcessiveLoad, "a frame of the control stream is too large"}
	errFrameSize    = &ConnError{FrameError, "a frame has not the size of its type"}
)

// http2Type reports whether the type is one of HTTP/2 that HTTP/3 has no use for. RFC 9114
// section 7.2.8: their receipt is an error of the connection, H3_FRAME_UNEXPECTED.
func (h Header) http2Type() bool {
	return h.Type == 0x2 || h.Type == 0x6 || h.Type == 0x8 || h.Type == 0x9
}

// CheckRequest judges the header of a frame that a client has sent on the stream of a
// request (RFC 9114 section 7.2, RFC 9218 section 7.2). What follows what on it is not
// judged here. Frames that are not Known pass. An error is a ConnError.
func (h Header) CheckRequest() error {
	switch h.Type {
	case FrameData, FrameHeaders:
		return nil
	case FramePushPromise:
		return errPush
	}
	if h.http2Type() {
		return errHTTP2Frame
	}
	if h.Known() {
		return errOnRequest
	}
	return nil
}

// CheckControl judges the header of a frame that a client has sent on its control stream,
// but not that SETTINGS is the first and the only one. A frame that is Known and passes has
// MaxControl bytes at most. An error is a ConnError.
func (h Header) CheckControl() error {
	switch h.Type {
	case FrameData, FrameHeaders, FramePushPromise:
		return errOnControl
	case FrameCancelPush, FramePriorityUpdatePush:
		// RFC 9114 section 7.2.3 and RFC 9218 section 7.2: the ID of a push that was not
		// promised is H3_ID_ERROR.
		return errNoPush
	case FrameGoAway, FrameMaxPushID:
		if h.Length == 0 || h.Length > 8 {
			return errFrameSize
		}
	case FrameSettings, FramePriorityUpdate:
		if h.Length > MaxControl {
			return errControlLarge
		}
	}
	if h.http2Type() {
		return errHTTP2Frame
	}
	return nil
}

// Reader cuts the bytes of a stream, which come in any parts, into frames. The zero value
// is ready. Payloads are not copied and not kept, so a Reader has no bound to watch; the
// type and the length of a frame are known before its payload, which is when a caller
// judges them.
type Reader struct {
	header Header
	left   uint64 // of the payload
	ints   VarintReader
	typed  bool // header.Type has been read
}

// Part is what Reader.Next has found.
type Part uint8

const (
	// PartNone: all bytes have been read.
	PartNone Part = iota
	// PartHeader: a frame begins. Reader.Header is its header; if its length is 0, there is
	// no PartPayload.
	PartHeader
	// PartPayload: some bytes of the payload. Reader.Left is how many follow.
	PartPayload
)

// Next reads b up to the end of a frame's header, or of what is there of its payload. n is
// how many bytes it has read; of PartPayload b[:n] is the payload. The caller goes on with
// b[n:] until it gets PartNone.
func (r *Reader) Next(b []byte) (part Part, n int) {
	if r.left > 0 {
		if len(b) == 0 {
			return PartNone, 0
		}
		n = int(min(r.left, uint64(len(b))))
		r.left -= uint64(n)
		return PartPayload, n
	}
	if !r.typed {
		v, used, done := r.ints.Read(b)
		if n = used; !done {
			return PartNone, n
		}
		r.header.Type, r.typed = FrameType(v), true
	}
	v, used, done := r.ints.Read(b[n:])
	if n += used; !done {
		return PartNone, n
	}
	r.header.Length, r.left, r.typed = v, v, false
	return PartHeader, n
}

// Header is the header of the frame that has begun last.
func (r *Reader) Header() Header { return r.header }

// Left is how many bytes of the frame's payload are still to come.
func (r *Reader) Left() uint64 { return r.left }

// Within reports whether a frame has begun, if only with a part of its header, and not
// ended. If the stream ends there, that is H3_FRAME_ERROR (RFC 9114 section 7.1).
func (r *Reader) Within() bool { return r.left > 0 || r.typed || r.ints.Within() }

// MaxHeaderLen is how long a frame's header is at most.
const MaxHeaderLen = 16

// AppendHeader appends a frame's header.
func AppendHeader(b []byte, t FrameType, length int) []byte {
	return AppendVarint(AppendVarint(b, uint64(t)), uint64(length))
}

// AppendGoAway appends a GOAWAY frame: of a server with the ID of a stream, of a client with
// that of a push.
func AppendGoAway(b []byte, id uint64) []byte {
	return AppendVarint(AppendHeader(b, FrameGoAway, VarintLen(id)), id)
}

// ParseID parses the payload of GOAWAY or MAX_PUSH_ID: one integer. An error is a ConnError.
func ParseID(p []byte) (uint64, error) {
	v, n := Varint(p)
	if n == 0 || n != len(p) {
		return 0, errFrameSize
	}
	return v, nil
}
