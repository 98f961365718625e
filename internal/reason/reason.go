package reason

import "net/http"

// A Code is why a request, or a check of a server's health, failed. The zero Code is no failure.
type Code uint8

// The codes. Each names what the proxy saw first; what follows from it has no code of its own.
const (
	None Code = iota

	// No connection: nothing of the request has left the proxy.

	Refused     // RST to the SYN; a unix socket without a listener
	NoRoute     // EHOSTUNREACH, ENETUNREACH
	DialTimeout // no answer to the SYN in time
	DialFailed  // another error of connect
	TLSTimeout
	TLSFailed      // the handshake ended without success
	TLSCertificate // the proxy rejects the server's certificate
	TLSAlert       // the server ended the handshake with an alert
	DNSFailed
	DNSTimeout

	// The connection ended.

	Closed    // FIN before the head of a response was whole
	Reset     // RST at that time
	Truncated // FIN or RST within the body of a response
	Unread    // the same, when the client has been waited for to take more of it
	GoAway    // HTTP/2: the stream is above the last one that GOAWAY names (RFC 9113 section 6.8)
	Unserved  // HTTP/2: RST_STREAM with REFUSED_STREAM (RFC 9113 section 8.7)
	Unclear   // HTTP/2: GoAway, Unserved, or an error such as PROTOCOL_ERROR, which a client's bytes can cause

	// A limit of time was exceeded.

	SendTimeout     // the server takes no more of the request
	ResponseTimeout // no head of a response
	StallTimeout    // no more of a response's body
	CheckTimeout    // a check of health has no result

	// A response that cannot be forwarded.

	Malformed
	HeadTooLarge
	BadFraming  // of Content-Length and Transfer-Encoding
	BadUpgrade  // 101 that was not asked for, or with another protocol
	ManyInterim // more 1xx than are forwarded
	NeedsLength // HTTP/1.0 server, and a request whose length is unknown

	// The server's own answer says that it cannot serve.

	Status502
	Status503
	Status504
	CheckStatus // a check of health was answered with another status than it expects

	// Nothing that a server did.

	NoServer     // none is left to try
	QueueFull    // of requests that wait for a server
	QueueTimeout // waited too long for a server
	NoSocket     // the proxy has no descriptor, port or memory for a connection
	Loop         // the request has passed this proxy before
	ClientGone
	Operator // drained by a person
	Internal

	// Codes is how many there are.
	Codes
)

// StatusClientGone is that of ClientGone, and nginx's for a client that has closed its connection. It is for the log,
// and never sent.
const StatusClientGone = 499

type row struct {
	text   string
	status int    // of the response
	error  string // of RFC 9209 section 2.3; "" for a response that is the server's own, or none
	blames bool
}

// Statuses follow the design, and RFC 9209's recommendation where it has none: 504 for what took too long, 503 for what
// may work again soon, 502 for what the server did wrong.
var rows = [Codes]row{
	None: {"", 0, "", false},

	Refused:        {"connection refused", 502, "connection_refused", true},
	NoRoute:        {"no route to the server", 502, "destination_ip_unroutable", true},
	DialTimeout:    {"connect timed out", 504, "connection_timeout", true},
	DialFailed:     {"connect failed", 502, "destination_unavailable", true},
	TLSTimeout:     {"TLS handshake timed out", 504, "connection_timeout", true},
	TLSFailed:      {"TLS handshake failed", 502, "tls_protocol_error", true},
	TLSCertificate: {"certificate not accepted", 502, "tls_certificate_error", true},
	TLSAlert:       {"TLS alert from the server", 502, "tls_alert_received", true},
	DNSFailed:      {"name not resolved", 502, "dns_error", true},
	DNSTimeout:     {"name resolution timed out", 504, "dns_timeout", true},

	Closed:    {"closed before the response", 502, "connection_terminated", true},
	Reset:     {"reset before the response", 502, "connection_terminated", true},
	Truncated: {"response cut off", 502, "http_response_incomplete", true},
	Unread:    {"response cut off, slow client", 502, "http_response_incomplete", false},
	GoAway:    {"not processed: GOAWAY", 502, "connection_terminated", false},
	Unserved:  {"not processed: REFUSED_STREAM", 502, "connection_terminated", false},
	Unclear:   {"stream not accepted", 502, "connection_terminated", false},

	SendTimeout:     {"request not accepted in time", 504, "connection_write_timeout", true},
	ResponseTimeout: {"no response in time", 504, "http_response_timeout", true},
	StallTimeout:    {"response stalled", 504, "connection_read_timeout", true},
	CheckTimeout:    {"check timed out", 504, "http_response_timeout", true},

	Malformed:    {"malformed response", 502, "http_protocol_error", true},
	HeadTooLarge: {"response head too large", 502, "http_response_header_section_size", true},
	BadFraming:   {"bad framing of the response", 502, "http_protocol_error", true},
	BadUpgrade:   {"unrequested upgrade", 502, "http_upgrade_failed", true},
	ManyInterim:  {"too many interim responses", 502, "http_protocol_error", true},
	NeedsLength:  {"HTTP/1.0 server, request without length", 502, "http_protocol_error", false},

	Status502:   {"status 502", 502, "", true},
	Status503:   {"status 503", 503, "", true},
	Status504:   {"status 504", 504, "", true},
	CheckStatus: {"unexpected status", 503, "destination_unavailable", true},

	NoServer:     {"no server available", 503, "destination_unavailable", false},
	QueueFull:    {"queue full", 503, "connection_limit_reached", false},
	QueueTimeout: {"queued too long", 503, "connection_limit_reached", false},
	NoSocket:     {"no socket left", 503, "proxy_internal_error", false},
	Loop:         {"request loop", 508, "proxy_loop_detected", false},
	ClientGone:   {"client gone", StatusClientGone, "", false},
	Operator:     {"drained by the operator", 503, "destination_unavailable", false},
	Internal:     {"internal error", 500, "proxy_internal_error", false},
}

func (c Code) row() *row {
	if c >= Codes {
		c = Internal
	}
	return &rows[c]
}

// String returns a few words of ASCII for a log line or the admin page, "" for None.
func (c Code) String() string { return c.row().text }

// Status returns the status of the response that the proxy makes of the failure, 0 for None. That of ClientGone, 499,
// is for the log: no response is sent.
func (c Code) Status() int { return c.row().status }

// ErrorType returns the value of the parameter error of Proxy-Status (RFC 9209 section 2.3); "" if the proxy makes no
// response of its own: for None, ClientGone and statuses of the server.
func (c Code) ErrorType() string { return c.row().error }

// Blames reports whether the failure says something against the server, so that it counts for its ejection. A
// connection that was idle before may have ended for its age alone, whatever the code: see retry.Attempt.Blames.
func (c Code) Blames() bool { return c.row().blames }

// Of returns the code of a server's status: Status502, Status503, Status504, or None.
func Of(status int) Code {
	switch status {
	case http.StatusBadGateway:
		return Status502
	case http.StatusServiceUnavailable:
		return Status503
	case http.StatusGatewayTimeout:
		return Status504
	}
	return None
}

// FromServer reports whether c is a status of the server, which is forwarded if the request is not tried again.
func (c Code) FromServer() bool { return c >= Status502 && c <= Status504 }
