package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/origin"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
)

// h2client is the connections to a server of HTTP/2, which many requests share.
type h2client struct {
	transport *http.Transport
}

func newH2(l *link, o *UpstreamOptions) *h2client {
	t := &http.Transport{
		TLSClientConfig:        l.dialer.TLS,
		DisableCompression:     true, // it would change what is forwarded
		ResponseHeaderTimeout:  o.ResponseTimeout,
		IdleConnTimeout:        o.IdleTimeout,
		MaxResponseHeaderBytes: int64(http1.DefaultLimits.HeadBytes),
		Protocols:              new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			// A peer that is gone without a FIN is noticed by this alone.
			SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second, WriteByteTimeout: o.StallTimeout,
		},
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		l.entry.dials.Add(1)
		nc, f := l.dialer.Socket(ctx)
		if f != nil {
			return nil, f
		}
		if s, ok := nc.(*tls.Conn); ok && s.ConnectionState().NegotiatedProtocol != "h2" {
			nc.Close()
			return nil, &origin.Failure{Reason: reason.TLSFailed, Err: errNotH2}
		}
		return nc, nil
	}
	if o.TLS != nil {
		t.Protocols.SetHTTP2(true)
		t.DialTLSContext = dial
	} else {
		t.Protocols.SetUnencryptedHTTP2(true)
		t.DialContext = dial
	}
	return &h2client{t}
}

func (c *h2client) close() { c.transport.CloseIdleConnections() }

// streamError has the fields of http2.StreamError, which net/http's unexported error can be
// converted to (errors.As).
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return fmt.Sprintf("stream error %d", e.Code) }

const refusedStream = 7 // RFC 9113 section 7

// h2Failure is what an error of the Transport means. sent: a byte of the request may have
// been sent.
func h2Failure(ctx context.Context, err error, sent, received bool) *origin.Failure {
	f := &origin.Failure{Err: err, Reason: reason.Closed}
	switch {
	case received:
		f.Progress = retry.Received
	case sent:
		f.Progress = retry.Sent
	}
	var own *origin.Failure
	var stream streamError
	var timeout net.Error
	switch {
	case context.Cause(ctx) == errStalled:
		f.Reason = reason.StallTimeout
	case context.Cause(ctx) == errManyInterim:
		f.Reason = reason.ManyInterim
	case context.Cause(ctx) == errAgain:
		f.Reason, f.Err = reason.Unclear, errAgain
	case context.Cause(ctx) == errNoStream:
		f.Reason, f.Err = reason.DialFailed, errNoStream
	case ctx.Err() != nil:
		f.Reason = reason.ClientGone
	case errors.As(err, &own):
		f.Reason, f.Err = own.Reason, own.Err
	case errors.As(err, &stream) && stream.Code == refusedStream:
		f.Reason = reason.Unserved
	case errors.As(err, &stream):
		f.Reason = reason.Reset
	case errors.As(err, &timeout) && timeout.Timeout():
		f.Reason = reason.ResponseTimeout
	}
	if received && f.Reason != reason.ClientGone && f.Reason != reason.StallTimeout {
		f.Reason = reason.Truncated
	}
	return f
}

var (
	errStalled     = errors.New("proxy: no progress in time")
	errNotH2       = errors.New("the server does not speak HTTP/2")
	errManyInterim = errors.New("proxy: too many interim responses")
	errAgain       = errors.New("GOAWAY, REFUSED_STREAM or PROTOCOL_ERROR")
	errNoStream    = errors.New("the server permits no stream")
)

// maxWanted is how many connections the Transport may look for before it sends a request. When many requests
// begin at once others may take the streams of those that it finds, but hardly of so many.
const maxWanted = 100

// h2try is one try by the Transport, which by itself sends a request that is not accepted again without end.
type h2try struct {
	twice  bool // it may send it a second time: GOAWAY is how any server leaves, and may be the only one
	body   bool // it cannot, as it would have closed the body
	cancel context.CancelCauseFunc

	got    int // connections that it has been given, and wanted; of the goroutine of RoundTrip
	wanted int

	sent     atomic.Bool
	reused   atomic.Bool
	mu       sync.Mutex // for interim responses, which come on another goroutine
	over     bool
	interims int
}

// trace returns hooks that limit the try.
func (t *h2try) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) {
			if t.wanted++; t.wanted > maxWanted {
				t.cancel(errNoStream)
			}
		},
		GotConn: func(i httptrace.GotConnInfo) {
			t.wanted = 0
			t.reused.Store(i.Reused)
			if t.got++; t.got > 2 && t.sent.Load() || t.got > 1 && (t.body || t.sent.Load() && !t.twice) {
				t.cancel(errAgain)
			}
		},
		WroteHeaderField: func(string, []string) { t.sent.Store(true) },
	}
}

// interim passes on an interim response, unless the try is over.
func (t *h2try) interim(f *forwarding, status int, h textproto.MIMEHeader) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return nil
	}
	if t.interims++; t.interims > http1.MaxInterims {
		t.cancel(errManyInterim)
		return errManyInterim
	}
	if status != http.StatusContinue && status != http.StatusSwitchingProtocols {
		f.interim(status, http.Header(h))
	}
	return nil
}
