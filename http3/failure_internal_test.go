package http3

import (
	"errors"
	"fmt"
	"testing"

	"github.com/quic-go/quic-go"
)

// No client has words of its own in the log, and what the server or HTTP/3 has ended has not failed.
func TestFailure(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&quic.TransportError{Remote: true, ErrorCode: 0x130, ErrorMessage: "a\nb"}, "CRYPTO_ERROR 0x130 (remote): tls: unknown certificate authority"},
		{&quic.TransportError{Remote: true, ErrorCode: quic.ConnectionRefused, ErrorMessage: "a\nb"}, "CONNECTION_REFUSED (remote)"},
		{&quic.TransportError{ErrorCode: quic.ProtocolViolation, ErrorMessage: "as it is"}, "PROTOCOL_VIOLATION (local): as it is"},
		{&quic.IdleTimeoutError{}, "read udp: i/o timeout"},
		{&quic.HandshakeTimeoutError{}, "read udp: i/o timeout"},
		{errors.New("another"), "another"},
		{&quic.TransportError{ErrorCode: quic.ConnectionRefused}, "<nil>"},
		{&quic.ApplicationError{Remote: true, ErrorMessage: "a\nb"}, "<nil>"},
		{&quic.ApplicationError{ErrorCode: 0x107}, "<nil>"},
	} {
		if got := fmt.Sprint(failure(tt.err, nil)); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.err, got, tt.want)
		}
	}
}
