package wsframe

import (
	"encoding/binary"
	"unicode/utf8"
)

// Code is the status code of a Close frame (RFC 6455 section 7.4).
type Code uint16

const (
	CodeNormal      Code = 1000
	CodeGoingAway   Code = 1001
	CodeProtocol    Code = 1002
	CodeUnsupported Code = 1003
	CodeNoStatus    Code = 1005 // never sent: the Close frame had no code
	CodeAbnormal    Code = 1006 // never sent: there was no Close frame
	CodeInvalid     Code = 1007
	CodePolicy      Code = 1008
	CodeTooBig      Code = 1009
	CodeExtension   Code = 1010
	CodeInternal    Code = 1011
	CodeRestart     Code = 1012
	CodeTryLater    Code = 1013
	CodeBadGateway  Code = 1014
	firstRegistered Code = 3000
	lastPrivate     Code = 4999
	maxReason            = MaxControl - 2
)

// Valid reports whether the code may be in a Close frame: those that RFC 6455 and
// the IANA registry define, and those for libraries and applications.
func (c Code) Valid() bool {
	switch {
	case c >= firstRegistered:
		return c <= lastPrivate
	case c == CodeNoStatus || c == CodeAbnormal || c == 1004:
		return false // section 7.4.1: reserved, or MUST NOT be sent
	}
	return c >= CodeNormal && c <= CodeBadGateway
}

// ParseClose returns what the payload of a Close frame says; without a code
// CodeNoStatus.
func ParseClose(p []byte) (Code, string, error) {
	if len(p) == 0 {
		return CodeNoStatus, "", nil
	}
	if len(p) == 1 {
		// Section 5.5.1: the first two bytes MUST be the code.
		return 0, "", errCloseLength
	}
	c := Code(binary.BigEndian.Uint16(p))
	switch {
	case !c.Valid():
		return 0, "", errCloseCode
	case !utf8.Valid(p[2:]):
		return 0, "", errUTF8
	}
	return c, string(p[2:]), nil
}

// AppendClose appends a Close frame to dst. A code that must not be sent is left
// out, with the reason. A reason that is too long is cut between characters, and
// what is no UTF-8 in it is replaced.
func AppendClose(dst []byte, c Code, reason string) []byte {
	if !c.Valid() {
		return AppendFrame(dst, Close, false, nil)
	}
	var p [MaxControl]byte
	b := binary.BigEndian.AppendUint16(p[:0], uint16(c))
	for _, r := range reason { // invalid bytes are U+FFFD
		if len(b)+utf8.RuneLen(r) > MaxControl {
			break
		}
		b = utf8.AppendRune(b, r)
	}
	return AppendFrame(dst, Close, false, b)
}

// Error is why a connection fails, with the code of the Close frame that says so
// to the peer (RFC 6455 section 7.1.7).
type Error struct {
	Code   Code
	Reason string
}

func (e *Error) Error() string { return "websocket: " + e.Reason }

var (
	errRSV               = &Error{CodeProtocol, "reserved bits are set"}
	errOpcode            = &Error{CodeProtocol, "unknown opcode"}
	errFragmentedControl = &Error{CodeProtocol, "fragmented control frame"}
	errLongControl       = &Error{CodeProtocol, "control frame of more than 125 bytes"}
	errLength            = &Error{CodeProtocol, "invalid length of a frame"}
	errUnmasked          = &Error{CodeProtocol, "unmasked frame of a client"}
	errMasked            = &Error{CodeProtocol, "masked frame of a server"}
	errNoMessage         = &Error{CodeProtocol, "continuation without a message"}
	errUnfinished        = &Error{CodeProtocol, "message within a message"}
	errCloseLength       = &Error{CodeProtocol, "Close frame of one byte"}
	errCloseCode         = &Error{CodeProtocol, "invalid close code"}
	errUTF8              = &Error{CodeInvalid, "invalid UTF-8"}
	errTooBig            = &Error{CodeTooBig, "message too large"}
	errFragments         = &Error{CodePolicy, "too many fragments"}
)
