package wire

// A Refusal describes a request that a server refused without its handler, or a
// connection that it could not accept.
type Refusal struct {
	RemoteAddr string // "" if it is not known
	// LocalAddr is the address that the client connected to; of a connection that
	// there was no place for, that of the listener. "" if it is not known.
	LocalAddr string
	// Status is that of the response; 0 if the connection was closed without a
	// response.
	Status int
	// Reason says why, in a few words.
	Reason string
	// Line is the first line that the client has sent, as far as it was read,
	// at most 256 bytes; for a whole request over HTTP/2, what that would be.
	// Control characters, bytes beyond ASCII, quotes and backslashes are escaped
	// as \xHH, as nginx logs them.
	Line string
	// Omitted is the number of refusals before this one that were counted but
	// not reported, because there were too many. If it is not 0 the other
	// fields are empty.
	Omitted int64
}
