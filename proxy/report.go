package proxy

import "github.com/chert-http/chert/direct"

// SetReport is WithReport for an exchange: a Handler that forwards it on the event loop fills
// r. It may be read when the response has been sent.
func SetReport(x *direct.Exchange, r *Report) { x.Wire().SetValue(reportKey{}, r) }
