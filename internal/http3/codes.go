package http3

import "strconv"

// ErrCode is an error code of RFC 9114 section 8.1, RFC 9204 section 6, RFC 9297 section 5.2.
type ErrCode uint64

const (
	NoError ErrCode = 0x100 + iota
	GeneralProtocolError
	InternalError
	StreamCreationError
	ClosedCriticalStream
	FrameUnexpected
	FrameError
	ExcessiveLoad
	IDError
	SettingsError
	MissingSettings
	RequestRejected
	RequestCancelled
	RequestIncomplete
	MessageError
	ConnectError
	VersionFallback
)

const (
	QPACKDecompressionFailed ErrCode = 0x200 + iota
	QPACKEncoderStreamError
	QPACKDecoderStreamError
)

// DatagramError is of RFC 9297 section 5.2.
const DatagramError ErrCode = 0x33

var codeNames = [...]string{
	"H3_NO_ERROR", "H3_GENERAL_PROTOCOL_ERROR", "H3_INTERNAL_ERROR", "H3_STREAM_CREATION_ERROR",
	"H3_CLOSED_CRITICAL_STREAM", "H3_FRAME_UNEXPECTED", "H3_FRAME_ERROR", "H3_EXCESSIVE_LOAD", "H3_ID_ERROR",
	"H3_SETTINGS_ERROR", "H3_MISSING_SETTINGS", "H3_REQUEST_REJECTED", "H3_REQUEST_CANCELLED",
	"H3_REQUEST_INCOMPLETE", "H3_MESSAGE_ERROR", "H3_CONNECT_ERROR", "H3_VERSION_FALLBACK",
}

var qpackNames = [...]string{
	"QPACK_DECOMPRESSION_FAILED", "QPACK_ENCODER_STREAM_ERROR", "QPACK_DECODER_STREAM_ERROR",
}

// String is the code's name in the RFC.
func (c ErrCode) String() string {
	switch {
	case c == DatagramError:
		return "H3_DATAGRAM_ERROR"
	case c >= NoError && c-NoError < ErrCode(len(codeNames)):
		return codeNames[c-NoError]
	case c >= QPACKDecompressionFailed && c-QPACKDecompressionFailed < ErrCode(len(qpackNames)):
		return qpackNames[c-QPACKDecompressionFailed]
	}
	return "error code 0x" + strconv.FormatUint(uint64(c), 16)
}

// A ConnError closes the connection with its code (RFC 9114 section 8).
type ConnError struct {
	Code   ErrCode
	Reason string
}

func (e *ConnError) Error() string { return "http3: " + e.Code.String() + ": " + e.Reason }

// A StreamError ends one stream with its code (RFC 9114 section 8).
type StreamError struct {
	Code   ErrCode
	Reason string
}

func (e *StreamError) Error() string {
	return "http3: stream: " + e.Code.String() + ": " + e.Reason
}
