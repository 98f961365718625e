package http2

import "strconv"

// ErrCode is an error code of RFC 9113 section 7.
type ErrCode uint32

const (
	NoError ErrCode = iota
	ProtocolError
	InternalError
	FlowControlError
	SettingsTimeout
	StreamClosed
	FrameSizeError
	RefusedStream
	Cancel
	CompressionError
	ConnectError
	EnhanceYourCalm
	InadequateSecurity
	HTTP11Required
)

var codeNames = [...]string{
	"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
	"STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR",
	"ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
}

// String is the code's name in the RFC.
func (c ErrCode) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return "error code " + strconv.FormatUint(uint64(c), 10)
}

// A ConnError ends the connection with a GOAWAY (RFC 9113 section 5.4.1).
type ConnError struct {
	Code   ErrCode
	Reason string
}

func (e *ConnError) Error() string { return "http2: " + e.Code.String() + ": " + e.Reason }

// A StreamError ends one stream with a RST_STREAM (RFC 9113 section 5.4.2).
type StreamError struct {
	Code   ErrCode
	Reason string
}

func (e *StreamError) Error() string {
	return "http2: stream: " + e.Code.String() + ": " + e.Reason
}
