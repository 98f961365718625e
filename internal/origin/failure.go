package origin

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
)

// Failure is why there is no response, or no more of it.
type Failure struct {
	Reason   reason.Code
	Progress retry.Progress
	Awaited  bool  // as in retry.Attempt
	Err      error // what the system or a library has said; may be nil
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return "origin: " + f.Reason.String()
	}
	return "origin: " + f.Reason.String() + ": " + f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// SlowClient is how long, in all, a server must have waited for the client to take its response, for the end of that
// to be reason.Unread: servers have limits of time for that.
const SlowClient = time.Second

// CutReason returns the code of a response that was cut off, or stays as it is: waited is for how long the client was
// waited for.
func CutReason(code reason.Code, waited int64) reason.Code {
	if code == reason.Truncated && waited >= int64(SlowClient) {
		return reason.Unread
	}
	return code
}

// DialReason returns the code of an error of connect.
func DialReason(err error) reason.Code {
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.EAGAIN):
		// The last two are those of a unix socket: there is none, or its backlog is full.
		return reason.Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return reason.NoRoute
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.EADDRNOTAVAIL),
		errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		return reason.NoSocket // nothing that the server did
	case errors.As(err, &dns):
		if dns.IsTimeout {
			return reason.DNSTimeout
		}
		return reason.DNSFailed
	case isTimeout(err):
		return reason.DialTimeout
	}
	return reason.DialFailed
}

// TLSReason returns the code of an error of a handshake.
func TLSReason(err error) reason.Code {
	var certificate *tls.CertificateVerificationError
	switch {
	case isTimeout(err):
		return reason.TLSTimeout
	case errors.As(err, &certificate):
		return reason.TLSCertificate
	case isAlert(err):
		return reason.TLSAlert
	}
	return reason.TLSFailed
}

// isAlert reports whether a TLS peer has sent an alert.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// EndReason returns the code of an error of Read or Write before the head of a response is
// whole. late is that of a time limit.
func EndReason(err error, late reason.Code) reason.Code {
	switch {
	case isTimeout(err):
		return late
	case isAlert(err):
		return reason.TLSAlert
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return reason.Reset
	}
	return reason.Closed
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// Malformed returns the code of an error of the parser.
func Malformed(err error) reason.Code {
	switch http1.FaultOf(err) {
	case http1.FaultLength:
		return reason.HeadTooLarge
	case http1.FaultInterims:
		return reason.ManyInterim
	case http1.FaultSwitch:
		return reason.BadUpgrade
	case http1.FaultFraming:
		return reason.BadFraming
	}
	return reason.Malformed
}
