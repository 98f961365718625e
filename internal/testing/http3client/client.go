package http3client

import (
	"errors"
	"net/http"

	"github.com/quic-go/quic-go/http3"
)

// Transport is an [http3.Transport] that makes a request again, on another connection, if the
// client itself closed the one it was made on. quic-go does so when a GOAWAY comes between the
// opening of a request's stream and its being counted, and returns an error for a request that
// the server has not refused. An error that comes from the server, or for a request with a
// body, is returned as it is.
type Transport struct{ *http3.Transport }

// RoundTrip implements [http.RoundTripper].
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		if res, err := t.Transport.RoundTrip(r); r.Body != nil || !Own(err) {
			return res, err
		}
	}
}

// Own reports whether err says that the client itself has closed its connection. A body may
// end so as well, if the close is late.
func Own(err error) bool {
	var e *http3.Error
	return errors.As(err, &e) && !e.Remote && e.ErrorCode == http3.ErrCodeNoError
}
