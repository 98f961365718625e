// Package reason names why a request to an upstream server failed: one vocabulary for the log, the admin page, the
// field Proxy-Status (RFC 9209) and the status of the response.
//
// A Code is what happened, as the proxy saw it. Whether the request is tried again is the business of package retry,
// and what the failure means for the server that of package health; both read the code and never its text.
package reason

// Models are Envoy's response_code_details and HAProxy's "Session state at disconnection": one short constant for each
// cause, never text of a peer, so that nothing a server sends reaches a log line or a field through here.
//
// It imports the standard library only. Whatever takes part in proxying may import it.
