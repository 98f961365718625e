package http1

// Error is a refusal. The server answers with Status and closes the connection;
// for a response it is the gateway that does, and Status is 502. All values are
// preallocated and must not be changed.
type Error struct {
	Status int
	Reason string // for the log; a few words, no input in it
}

func (e *Error) Error() string { return "http1: " + e.Reason }

// Request line.
var (
	errFirstByte     = &Error{400, "not an HTTP request"}
	errMethod        = &Error{400, "malformed method"}
	errTarget        = &Error{400, "malformed request target"}
	errTargetForm    = &Error{400, "request target has the wrong form for the method"}
	errVersion       = &Error{400, "malformed HTTP version"}
	errMajor         = &Error{505, "unsupported HTTP version"}
	errTargetTooLong = &Error{414, "request line too long"}
)

// Field lines.
var (
	errFieldName     = &Error{400, "malformed field name"}
	errSpaceColon    = &Error{400, "whitespace before the colon"}
	errFold          = &Error{400, "folded field line"}
	errFieldValue    = &Error{400, "control byte in a field value"}
	errBareCR        = &Error{400, "CR without LF"}
	errBareLF        = &Error{400, "LF without CR"}
	errHeadTooLong   = &Error{431, "header section too long"}
	errTooManyFields = &Error{431, "too many fields"}
)

// Fields in combination.
var (
	errNoHost           = &Error{400, "missing Host"}
	errManyHosts        = &Error{400, "more than one Host"}
	errHost             = &Error{400, "malformed Host"}
	errLength           = &Error{400, "malformed Content-Length"}
	errManyLengths      = &Error{400, "more than one Content-Length"}
	errLengthAndCoding  = &Error{400, "Content-Length with Transfer-Encoding"}
	errCodingVersion    = &Error{400, "Transfer-Encoding in HTTP/1.0"}
	errCoding           = &Error{501, "malformed Transfer-Encoding"}
	errChunkedNotFinal  = &Error{400, "chunked is not the final transfer coding"}
	errChunkedParameter = &Error{400, "chunked with a parameter"}
	errUnknownCoding    = &Error{501, "unknown transfer coding"}
	errTrailerName      = &Error{400, "field not allowed in a trailer section"}
)

// Chunked coding.
var (
	errChunkSize     = &Error{400, "malformed chunk size"}
	errChunkTooLarge = &Error{400, "chunk size too large"}
	errChunkExt      = &Error{400, "malformed chunk extension"}
	errChunkEnd      = &Error{400, "chunk does not end in CRLF"}
	// ErrChunkLine is exported because net/http's counterpart has an identity.
	ErrChunkLine = &Error{400, "chunk line too long"}

	errChunkExcess = &Error{400, "too many bytes between chunk data"}
)

// Responses only.
var (
	errNotResponse     = &Error{502, "not an HTTP response"}
	errStatusLine      = &Error{502, "malformed status line"}
	errStatus          = &Error{502, "status code out of range"}
	errReason          = &Error{502, "control byte in the reason phrase"}
	errStatusTooLong   = &Error{502, "status line too long"}
	errInterimBody     = &Error{502, "interim response with a body"}
	errManyInterims    = &Error{502, "too many interim responses"}
	errSwitchUnasked   = &Error{502, "switch to a protocol that was not asked for"}
	errSwitchMalformed = &Error{502, "switch of protocols without Upgrade"}
	// ErrTruncated is an end of the connection within a response.
	ErrTruncated = &Error{502, "connection closed before the end of the response"}
)

// inResponses has, for each error that requests and responses have in common, the
// one that refuses a response for the same reason.
var inResponses = func() map[*Error]*Error {
	m := map[*Error]*Error{}
	for _, e := range []*Error{
		errVersion, errMajor,
		errFieldName, errSpaceColon, errFold, errFieldValue, errBareCR, errBareLF, errHeadTooLong, errTooManyFields,
		errLength, errManyLengths, errLengthAndCoding, errCodingVersion, errCoding, errChunkedNotFinal,
		errChunkedParameter, errUnknownCoding, errTrailerName,
		errChunkSize, errChunkTooLarge, errChunkExt, errChunkEnd, ErrChunkLine, errChunkExcess,
	} {
		m[e] = &Error{502, e.Reason}
	}
	return m
}()

// inResponse returns the error that refuses a response for the reason of e.
func (e *Error) inResponse() *Error {
	if r := inResponses[e]; r != nil {
		return r
	}
	return e
}

// Fault is the kind of an error that refuses a response, for a gateway that reports it.
type Fault uint8

const (
	FaultSyntax   Fault = iota
	FaultLength         // the head, or its number of fields
	FaultFraming        // Content-Length, Transfer-Encoding and the chunked coding
	FaultInterims       // more interim responses than MaxInterims
	FaultSwitch         // to another protocol
)

var faults = func() map[*Error]Fault {
	m := map[*Error]Fault{
		errStatusTooLong: FaultLength, errManyInterims: FaultInterims, errSwitchUnasked: FaultSwitch,
		errSwitchMalformed: FaultSwitch, errInterimBody: FaultFraming,
	}
	for _, e := range []*Error{errHeadTooLong, errTooManyFields} {
		m[inResponses[e]] = FaultLength
	}
	for _, e := range []*Error{
		errLength, errManyLengths, errLengthAndCoding, errCodingVersion, errCoding, errChunkedNotFinal,
		errChunkedParameter, errUnknownCoding, errChunkSize, errChunkTooLarge, errChunkExt, errChunkEnd, ErrChunkLine,
		errChunkExcess,
	} {
		m[inResponses[e]] = FaultFraming
	}
	return m
}()

// FaultOf returns the kind of an error of Response.Parse, or of Body.
func FaultOf(err error) Fault {
	e, _ := err.(*Error)
	return faults[e]
}
