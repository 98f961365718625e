package forwardauth

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/direct/wire"
)

// Options are the options of New.
type Options struct {
	// URL is what is asked, http or https. It has no user and no fragment.
	URL string
	// Socket, if not "", is the path of the unix socket that the server listens on; the
	// host of URL is then only a name.
	Socket string
	// RootCAs verify a server of https; nil: those of the system.
	RootCAs *x509.CertPool
	// Headers are the fields of an answer that admits a request which the handler gets
	// as fields of the request. Those of the client are removed first, in any case of
	// letters and with "_" for "-", and so are those that the answer does not have.
	Headers []string
	// ResponseHeaders are the fields of such an answer that the client gets, such as
	// Set-Cookie of a session that was extended.
	ResponseHeaders []string
	// User is the one of Headers that has the name of the user, for middleware.UserOf
	// and the access log; "": none.
	User string
	// Scheme is sent as X-Forwarded-Proto, http or https. "": that of the connection,
	// which is http behind a proxy that terminates TLS.
	Scheme string
	// Timeout is how long an answer may take, body included, also of one that admits.
	// Default 5 s; negative: as long as the client waits.
	Timeout time.Duration
	// MaxConns is how many connections to the server there may be, and so how many
	// requests are asked about at a time; more wait within Timeout. Default 64;
	// negative: no limit.
	MaxConns int
	// MaxBody is the longest body of an answer that refuses, in bytes. A longer one is
	// an error of the server. Default 64 KiB; negative: none is passed on.
	MaxBody int64
	// Logger gets, at most once a second, why requests could not be decided about, with
	// level Error; nil: slog.Default.
	Logger *slog.Logger
}

// maxHeader bounds the header of an answer, in bytes.
const maxHeader = 64 << 10

// dialTimeout is how long a connection to the server may take if answers have no limit.
const dialTimeout = 30 * time.Second

func (o *Options) complete() error {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return fmt.Errorf("option URL: %w", errors.Unwrap(err))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New(`option URL: want a whole URL, such as "http://127.0.0.1:9091/verify"`)
	case u.Port() != "" && !isPort(u.Port()):
		return errors.New("option URL: want a port from 1 to 65535")
	case u.User != nil || u.Fragment != "":
		return errors.New("option URL: want no user and no fragment")
	case o.Scheme != "" && o.Scheme != "http" && o.Scheme != "https":
		return errors.New("option Scheme: want http or https")
	case o.User != "" && !slices.ContainsFunc(o.Headers, func(s string) bool { return strings.EqualFold(s, o.User) }):
		return errors.New("option User: want one of Headers")
	}
	if o.Headers, err = canonical(o.Headers); err != nil {
		return fmt.Errorf("option Headers: %w", err)
	}
	if o.ResponseHeaders, err = canonical(o.ResponseHeaders); err != nil {
		return fmt.Errorf("option ResponseHeaders: %w", err)
	}
	o.User = http.CanonicalHeaderKey(o.User)
	o.Timeout, o.MaxConns = cmp.Or(o.Timeout, 5*time.Second), cmp.Or(o.MaxConns, 64)
	o.MaxBody = min(max(cmp.Or(o.MaxBody, 64<<10), 0), math.MaxInt64-1) // one more is read
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return nil
}

// isPort reports whether a server can be reached at a port; url.Parse accepts any number.
func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// canonical checks names of fields.
func canonical(names []string) ([]string, error) {
	all := make([]string, len(names))
	for i, name := range names {
		if err := wire.CheckField(name, ""); err != nil {
			return nil, fmt.Errorf("the field %q %w", name, err)
		}
		if all[i] = http.CanonicalHeaderKey(name); notOffered(all[i]) {
			return nil, fmt.Errorf("the field %q is of one message and cannot be copied", name)
		}
	}
	return all, nil
}

// transport keeps connections open, and follows neither redirects nor the proxies of the
// environment, to which it would show the credentials of clients.
func (o *Options) transport() *http.Transport {
	// Dialing goes on after a request has given up, and counts for MaxConns: without limits of
	// its own a server that is silent would take all connections, for good.
	limit := o.Timeout
	if limit < 0 {
		limit = dialTimeout
	}
	d := &net.Dialer{Timeout: limit}
	t := &http.Transport{
		DialContext: d.DialContext, TLSHandshakeTimeout: limit,
		MaxConnsPerHost: max(o.MaxConns, 0), MaxIdleConnsPerHost: max(o.MaxConns, 2), IdleConnTimeout: time.Minute,
		MaxResponseHeaderBytes: maxHeader, DisableCompression: true,
		TLSClientConfig: &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
	}
	if o.Socket != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", o.Socket)
		}
	}
	return t
}
