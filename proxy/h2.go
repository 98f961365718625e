package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/origin"
	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
	"github.com/chert-http/chert/internal/sys"
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
			// No PINGs: gRPC's servers take more than one in five minutes for an attack.
			WriteByteTimeout: o.StallTimeout,
			// What a client that does not read costs, in place of 4 MiB. One download is as fast with it on loopback;
			// a round trip of 10 ms leaves 25 MB/s.
			MaxReceiveBufferPerStream: 256 << 10,
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
		limitLost(nc)
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

// lost is how long a server may acknowledge nothing. Without a limit, requests would go for a quarter of an hour to one
// that is gone without a FIN.
const lost = 30 * time.Second

// limitLost has the system end nc when its server is lost.
func limitLost(nc net.Conn) {
	if s, ok := nc.(*tls.Conn); ok {
		nc = s.NetConn()
	}
	if s, ok := nc.(*net.TCPConn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			raw.Control(func(fd uintptr) { sys.SetLost(int(fd), lost) })
		}
	}
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

// headTooLong ends the error of the Transport for a request whose head is larger than the server has said that it
// takes. Nothing of it has been sent.
const headTooLong = "request header list larger than peer's advertised limit"

// notAccepted returns what the Transport says of a stream of which it would have sent the request again if it had
// the body once more: only the text has the cause. None: it is another error.
func notAccepted(err error) reason.Code {
	cause, ok := strings.CutPrefix(err.Error(), "http2: Transport: cannot retry err [")
	cause, _, _ = strings.Cut(cause, "]")
	switch {
	case !ok:
		return reason.None
	case strings.Contains(cause, "; REFUSED_STREAM; "):
		return reason.Unserved
	case strings.HasSuffix(cause, " GOAWAY"):
		return reason.GoAway
	}
	return reason.Unclear
}

// complained reports whether the server has ended the connection by a GOAWAY that says that what it has received was
// wrong. On a new one, a large head can be sent before the server has said what it takes.
func complained(err error) bool {
	text := err.Error()
	_, code, ok := strings.Cut(text, "http2: Transport received GOAWAY from server ErrCode:")
	if !ok && strings.HasPrefix(text, "http2: server sent GOAWAY and closed the connection; ") {
		_, code, _ = strings.Cut(text, "ErrCode=")
		code, _, _ = strings.Cut(code, ",")
	}
	switch code {
	case "PROTOCOL_ERROR", "COMPRESSION_ERROR", "FRAME_SIZE_ERROR", "ENHANCE_YOUR_CALM":
		return true
	}
	return false
}

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
	case context.Cause(ctx) == errUnread:
		f.Reason = reason.SendTimeout
	case context.Cause(ctx) == errManyInterim:
		f.Reason = reason.ManyInterim
	case context.Cause(ctx) == errRefused:
		f.Reason, f.Err = reason.Unserved, nil
	case context.Cause(ctx) == errAgain:
		f.Reason, f.Err = reason.Unclear, errAgain
	case context.Cause(ctx) == errNoStream:
		f.Reason, f.Err = reason.DialFailed, errNoStream
	case ctx.Err() != nil:
		f.Reason = reason.ClientGone
	case errors.As(err, &own):
		f.Reason, f.Err = own.Reason, own.Err
	case complained(err):
		f.Reason = reason.Unclear
	case notAccepted(err) != reason.None:
		f.Reason, f.Err = notAccepted(err), nil
	case errors.As(err, &stream):
		f.Reason = reason.Reset
	case errors.As(err, &timeout) && timeout.Timeout():
		f.Reason = reason.ResponseTimeout
	}
	switch f.Reason {
	case reason.ClientGone, reason.StallTimeout, reason.Unclear:
	default:
		if received {
			f.Reason = reason.Truncated
		}
	}
	return f
}

var (
	errStalled     = errors.New("proxy: no progress in time")
	errUnread      = errors.New("proxy: the server takes no more of the body")
	errNotH2       = errors.New("the server does not speak HTTP/2")
	errManyInterim = errors.New("proxy: too many interim responses")
	errRefused     = errors.New("REFUSED_STREAM")
	errAgain       = errors.New("GOAWAY, REFUSED_STREAM or PROTOCOL_ERROR")
	errNoStream    = errors.New("the server permits no stream")
)

// maxLooks is how often the Transport may look for a connection, to send a request or to send it again.
const maxLooks = 8

// maxFirst is how many new connections a request that has been sent may be given. The first request on a connection
// has room, so a server that does not accept it is about to leave, or accepts none.
const maxFirst = 2

// firstLook is how long is waited before the second look, about; each time it is twice as long.
const firstLook = 10 * time.Millisecond

// h2try is one try by the Transport, which by itself sends a request that is not accepted again without end.
type h2try struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	again  bool // it may be sent again: GOAWAY is how any server leaves, and may be the only one
	body   bool // it cannot, as the Transport would have closed the body

	// Those of the goroutine of RoundTrip.
	conn  net.Conn // the latest
	looks int      // how often one was looked for
	got   int      // how often it has been given one
	fresh int      // how often it was the first on one

	sent     atomic.Bool
	reused   atomic.Bool
	mu       sync.Mutex // for what comes on other goroutines
	over     bool
	interims int
	hints    []hint         // interim responses that have still to be passed on
	passing  bool           // pass runs
	passed   sync.WaitGroup // of pass
	panicked any            // what the client's http.ResponseWriter has panicked with in pass
	late     *time.Timer    // of endWithin; nil without
}

// hint is an interim response.
type hint struct {
	status int
	header http.Header
}

// endWithin limits the time for the end of a response to HEAD, for which the Transport waits before it returns.
func (t *h2try) endWithin(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.late != nil {
		return
	}
	t.late = time.AfterFunc(d, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.over {
			t.cancel(errStalled)
		}
	})
}

// end is called when the Transport has returned: what comes later is too late, and what came before is passed on first.
// It panics if that has.
func (t *h2try) end() {
	t.mu.Lock()
	t.over = true
	if t.late != nil {
		t.late.Stop()
	}
	t.mu.Unlock()
	t.passed.Wait()
	if v := t.panicked; v != nil {
		t.panicked = nil
		panic(v) // the handler's, as with a server of HTTP/1
	}
}

// trace returns hooks that limit the try.
func (t *h2try) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { t.look() },
		GotConn: func(i httptrace.GotConnInfo) {
			t.reused.Store(i.Reused)
			sent, last := t.sent.Load(), t.conn
			if t.got++; !i.Reused {
				t.fresh++
			}
			switch t.conn = i.Conn; {
			case sent && i.Conn == last: // after GOAWAY or PROTOCOL_ERROR it would be another
				if t.got > 2 {
					t.cancel(errRefused)
				}
			case t.got > 1 && (t.body || sent && !t.again), sent && t.fresh > maxFirst:
				t.cancel(errAgain)
			}
		},
		WroteHeaderField: func(string, []string) { t.sent.Store(true) },
	}
}

// look is called before a connection is looked for. A new one has room for a hundred streams until the server has said
// how many it takes. What was refused meanwhile waits for a moment, or it would be sent on more such connections.
func (t *h2try) look() {
	t.looks++
	switch wait := firstLook << max(t.looks-2, 0); {
	case t.looks > maxLooks && t.sent.Load():
		t.cancel(errAgain)
	case t.looks > maxLooks:
		t.cancel(errNoStream)
	case t.looks > 1:
		timer := time.NewTimer(wait/2 + rand.N(wait/2))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-t.ctx.Done():
		}
	}
}

// unread ends the try, whose server takes no more of the body. Once it has responded it may wait for the client to
// take that, and body2 has its limit.
func (t *h2try) unread() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.cancel(errUnread)
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
		t.hints = append(t.hints, hint{status, http.Header(h)})
		if !t.passing {
			t.passing = true
			t.passed.Go(func() { t.pass(f) })
		}
	}
	return nil
}

// pass passes on interim responses. The Transport cannot wait for that: it would read nothing for the other requests on
// the connection while one client takes none.
func (t *h2try) pass(f *forwarding) {
	defer func() {
		if v := recover(); v != nil {
			t.panicked = v
			t.cancel(nil) // and what has still to be passed on never is
		}
	}()
	for {
		t.mu.Lock()
		if len(t.hints) == 0 {
			t.passing = false
			t.mu.Unlock()
			return
		}
		next := t.hints[0]
		t.hints = t.hints[1:]
		t.mu.Unlock()
		f.interim(next.status, next.header)
	}
}
