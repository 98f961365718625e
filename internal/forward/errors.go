package forward

import "github.com/chert-http/chert/internal/http1"

// Refusals of requests.
var (
	errMethod       = &http1.Error{Status: 501, Reason: "method that a gateway does not forward"}
	errAsterisk     = &http1.Error{Status: 400, Reason: "asterisk target for a method other than OPTIONS"}
	errTarget       = &http1.Error{Status: 400, Reason: "target that cannot be forwarded"}
	errFragment     = &http1.Error{Status: 400, Reason: "fragment in the target"}
	errListed       = &http1.Error{Status: 400, Reason: "Connection lists a field that is not for one connection"}
	errManyOptions  = &http1.Error{Status: 400, Reason: "too many connection options"}
	errExpect       = &http1.Error{Status: 417, Reason: "unknown expectation"}
	errMaxForwards  = &http1.Error{Status: 400, Reason: "malformed Max-Forwards"}
	errManyForwards = &http1.Error{Status: 400, Reason: "more than one Max-Forwards"}
	errLoop         = &http1.Error{Status: 508, Reason: "request has passed this server twice"}

	// ErrLastHop is an OPTIONS or TRACE with Max-Forwards: 0, which the gateway must
	// answer itself (RFC 9110 section 7.6.2).
	ErrLastHop = &http1.Error{Status: 501, Reason: "Max-Forwards is 0"}
)

// Refusals of responses.
var errManyOptionsBack = &http1.Error{Status: 502, Reason: errManyOptions.Reason}
