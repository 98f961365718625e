package reason

import (
	"slices"
	"strings"
	"testing"
)

// The error types of RFC 9209 section 2.3 and the statuses that it recommends; 0 for any.
var registered = map[string]int{
	"dns_timeout":                        504,
	"dns_error":                          502,
	"destination_not_found":              500,
	"destination_unavailable":            503,
	"destination_ip_prohibited":          502,
	"destination_ip_unroutable":          502,
	"connection_refused":                 502,
	"connection_terminated":              502,
	"connection_timeout":                 504,
	"connection_read_timeout":            504,
	"connection_write_timeout":           504,
	"connection_limit_reached":           503,
	"tls_protocol_error":                 502,
	"tls_certificate_error":              502,
	"tls_alert_received":                 502,
	"http_request_error":                 0,
	"http_request_denied":                403,
	"http_response_incomplete":           502,
	"http_response_header_section_size":  502,
	"http_response_header_size":          502,
	"http_response_body_size":            502,
	"http_response_trailer_section_size": 502,
	"http_response_trailer_size":         502,
	"http_response_transfer_coding":      502,
	"http_response_content_coding":       502,
	"http_response_timeout":              504,
	"http_upgrade_failed":                502,
	"http_protocol_error":                502,
	"proxy_internal_response":            0,
	"proxy_internal_error":               500,
	"proxy_configuration_error":          500,
	"proxy_loop_detected":                502,
}

// otherStatus are codes whose status is not the recommended one, and why.
var otherStatus = map[Code]string{
	DialFailed: "the next request will fail too, so no Retry-After",
	NoSocket:   "503 for the client: another moment may have one",
	Loop:       "RFC 5842 section 7.2 has a status for it",
}

func TestRows(t *testing.T) {
	t.Parallel()
	texts := map[string]Code{}
	for c := None + 1; c < Codes; c++ {
		text := c.String()
		if text == "" || len(text) > 40 {
			t.Errorf("%d: text %q", c, text)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }); i >= 0 {
			t.Errorf("%q does not fit into a quoted string", text)
		}
		if before, ok := texts[text]; ok {
			t.Errorf("%q is the text of %d and %d", text, before, c)
		}
		texts[text] = c
		if !slices.Contains([]int{499, 500, 502, 503, 504, 508}, c.Status()) {
			t.Errorf("%s: status %d", c, c.Status())
		}
		e := c.ErrorType()
		if own := c != ClientGone && !c.FromServer(); own != (e != "") {
			t.Errorf("%s: error type %q", c, e)
		}
		if e == "" {
			continue
		}
		status, ok := registered[e]
		if !ok {
			t.Errorf("%s: %s is not in RFC 9209", c, e)
		}
		if _, other := otherStatus[c]; (status != 0 && status != c.Status()) != other {
			t.Errorf("%s: status %d, RFC 9209 recommends %d for %s", c, c.Status(), status, e)
		}
	}
}

func TestEdges(t *testing.T) {
	t.Parallel()
	if None.String() != "" || None.Status() != 0 || None.ErrorType() != "" || None.Blames() || None.FromServer() {
		t.Error("None is a failure")
	}
	for _, c := range []Code{Codes, 255} { // of a later version, or a mistake
		if c.String() != Internal.String() || c.Status() != 500 || c.Blames() || c.FromServer() {
			t.Errorf("%d is not an internal error", c)
		}
	}
	for status := range 1000 {
		c := Of(status)
		if want := status >= 502 && status <= 504; c.FromServer() != want || want && c.Status() != status {
			t.Errorf("status %d: %q", status, c)
		}
	}
}

// What a client can cause by itself, or the proxy lacks, is held against no server.
func TestBlames(t *testing.T) {
	t.Parallel()
	innocent := []Code{None, Unread, GoAway, Unserved, Unclear, NeedsLength, NoServer, QueueFull, QueueTimeout, NoSocket, Loop, ClientGone, Operator, Internal}
	for c := range Codes {
		if c.Blames() == slices.Contains(innocent, c) {
			t.Errorf("%q blames the server: %v", c, c.Blames())
		}
	}
}
