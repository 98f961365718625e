package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/reach"
	"github.com/spf13/cobra"
)

const healthLong = `Send one GET request to a server, and exit with 0 if it is answered with a status
from 200 to 399, otherwise with 1: for the health checks of containers, whose images
have neither curl nor wget. Redirects are not followed; a status that needs a
password is a failure.

URL may be a URL, host:port, a port of this machine, or unix:/path. Without it, it is
the port of $PORT on this machine if that is set, or else ` + healthDefault + `.
A proxy of the environment is not used.`

const healthExample = `  chert health
  chert health https://example.com/healthz --at 8443 --insecure
  chert health http://example.com/ --at unix:/run/chert/chert.sock`

const healthDefault = "127.0.0.1:8080" // where chert serve listens by default

// maxHealthBody is how much of the body of a response is read: the rest says no more about a server.
const maxHealthBody = 1 << 20

// healthOptions are the flags of "chert health".
type healthOptions struct {
	at       string
	timeout  time.Duration
	insecure bool
}

func newHealthCmd() *cobra.Command {
	o := healthOptions{timeout: 5 * time.Second}
	cmd := &cobra.Command{
		Use:     "health [URL]",
		Short:   "Check that a server responds",
		Long:    healthLong,
		Example: healthExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("one URL at most")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.timeout <= 0 {
				return fmt.Errorf("--timeout %v must be positive", o.timeout)
			}
			where := healthDefault
			if port := os.Getenv("PORT"); isPort(port) && port != "0" {
				where = port
			}
			if len(args) > 0 {
				where = args[0]
			}
			what, err := o.target(where)
			if err != nil {
				return err
			}
			status, err := o.ask(cmd.Context(), what)
			if err != nil {
				return failure{fmt.Errorf("%s: %w", what.Name, err)}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", what.Name, status)
			return nil
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.at, "at", "", "connect to this `address` rather than to the host of URL: host:port, a port of\n"+
		"this machine, or unix:/path")
	f.Var((*durationFlag)(&o.timeout), "timeout", "how long the whole request may take")
	addBool(cmd, &o.insecure, "insecure", "k", "accept any certificate, of a server on this machine only")
	mustComplete(cmd, "at", cobra.NoFileCompletions)
	mustComplete(cmd, "timeout", cobra.NoFileCompletions)
	return cmd
}

// target returns what to request and where.
func (o *healthOptions) target(where string) (reach.Target, error) {
	what, err := reach.Parse(where)
	if err != nil || o.at == "" {
		return what, err
	}
	at, err := reach.Parse(o.at)
	switch {
	case err != nil || strings.Contains(o.at, "/") && at.Socket == "":
		return what, fmt.Errorf("--at %q is no address; want host:port, a port of this machine, or unix:/path", o.at)
	case what.Socket != "":
		return what, errors.New("--at is for a URL with a host")
	}
	what.Name += " at " + o.at
	what.Socket = at.Socket
	o.at = at.URL.Host
	return what, nil
}

// dial connects to the target.
func (o *healthOptions) dial(ctx context.Context, what reach.Target, address string) (net.Conn, error) {
	network := "tcp"
	switch {
	case what.Socket != "":
		network, address = "unix", what.Socket
	case o.at != "":
		address = o.at
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok && o.insecure && !tcp.IP.IsLoopback() {
		conn.Close()
		return nil, fmt.Errorf("--insecure is for servers on this machine, and %s is not its loopback address", tcp.IP)
	}
	return conn, nil
}

// ask sends the request and reads the response. The status is that of a healthy server, or there is an error.
func (o *healthOptions) ask(ctx context.Context, what reach.Target) (status string, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	tr := &http.Transport{ // without the proxy of the environment
		DisableKeepAlives: true,
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: o.insecure},
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return o.dial(ctx, what, address)
		},
	}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, what.URL.String(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", "chert-health")
	if user := what.URL.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	res, err := tr.RoundTrip(req) // follows no redirects
	if err != nil {
		return "", o.reason(err)
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 399 {
		return "", errors.New(statusText(res.StatusCode))
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(res.Body, maxHealthBody)); err != nil {
		return "", fmt.Errorf("%s, and the response is incomplete: %w", statusText(res.StatusCode), o.reason(err))
	}
	return statusText(res.StatusCode), nil
}

// statusText does not repeat the reason that a server sends, which may have anything in it.
func statusText(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

// reason returns what a failed request means.
func (o *healthOptions) reason(err error) error {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("%w; --insecure accepts any certificate on this machine, and with --at the URL can have the "+
			"name that the certificate is for", err)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("no complete response within %v", o.timeout)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return fmt.Errorf("cannot connect: %w", cause(op.Err))
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return errors.New("the server does not speak TLS there; want a URL with http://")
	}
	return err
}
