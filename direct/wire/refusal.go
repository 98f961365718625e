package wire

// A Refusal is a request that a server has refused without its handler, or a
// connection for which it had no place.
type Refusal struct {
	RemoteAddr string // "" if it is not known
	// Status is what was answered; 0 if the connection was closed without an
	// answer.
	Status int
	// Reason says why, in a few words of the server's.
	Reason string
	// Line is what is known of the request line: the first line that the client
	// has sent, at most 256 bytes of it. Control characters, bytes beyond ASCII,
	// quotes and backslashes are escaped as \xHH, as nginx logs them.
	Line string
	// Omitted is how many refusals before this one were counted but not told of,
	// because there were too many. If it is not 0 the rest is empty.
	Omitted int64
}
