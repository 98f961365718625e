package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/admin"
	"github.com/chert-http/chert/cmd/chert/internal/reach"
	"github.com/chert-http/chert/internal/interval"
	"github.com/chert-http/chert/proxy"
	"github.com/chert-http/chert/stats"
)

// DefaultAddress is where "chert top" looks for a server.
const DefaultAddress = "127.0.0.1:9080"

const (
	patience = 5 * time.Second // for a response
	maxStats = 64 << 20        // bytes of one
)

// Client reads from an admin listener. It is safe for concurrent use.
type Client struct {
	// Name is the address for messages.
	Name string
	base string
	http *http.Client
}

// NewClient makes a client for a URL, an address, a port of this machine, or
// "unix:/path". "" is DefaultAddress.
func NewClient(where string) (*Client, error) {
	tr := &http.Transport{MaxIdleConns: 1, ResponseHeaderTimeout: patience} // without the proxy of the environment
	c := &Client{http: &http.Client{Transport: tr, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}}
	if where == "" {
		where = DefaultAddress
	}
	at, err := reach.Parse(where)
	if err != nil {
		return nil, err
	}
	if at.Socket != "" {
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", at.Socket)
		}
		c.Name, c.base = where, at.URL.String()
		return c, nil
	}
	at.URL.RawQuery = ""
	at.URL.Path = strings.TrimSuffix(at.URL.Path, "/") + "/"
	c.Name, c.base = at.URL.Redacted(), at.URL.String()
	return c, nil
}

// Close closes the connection to the server.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Sample reads the counters.
func (c *Client) Sample(ctx context.Context) (*interval.Sample, error) {
	s := new(interval.Sample)
	if err := c.get(ctx, "stats", s); err != nil {
		return nil, err
	}
	if s.At.IsZero() || s.Since.IsZero() {
		return nil, c.stranger("what /stats has is not chert's")
	}
	return s, nil
}

// Requests reads those in progress.
func (c *Client) Requests(ctx context.Context, most int) ([]interval.Running, error) {
	var list struct {
		At       time.Time
		Requests []stats.Request
	}
	err := c.get(ctx, "debug/requests?format=json&max="+strconv.Itoa(most), &list)
	return interval.Longest(list.Requests, list.At, most), err
}

// Connections reads the open ones, and the server's time.
func (c *Client) Connections(ctx context.Context, most int) (all []stats.Connection, at time.Time, err error) {
	var list struct {
		At          time.Time
		Connections []stats.Connection
	}
	err = c.get(ctx, "debug/connections?format=json&max="+strconv.Itoa(most), &list)
	return list.Connections, list.At, err
}

// Setup reads what the server has been set up to do.
func (c *Client) Setup(ctx context.Context) (s admin.Setup, err error) {
	err = c.get(ctx, "setup", &s)
	return s, err
}

// Upstreams are those that a server forwards to, and the stores through which it shares topics
// and rooms, at one moment.
type Upstreams struct {
	At        time.Time
	Upstreams []proxy.UpstreamStatus
	Stores    []stats.Store
}

// Upstreams reads the state of those that the server forwards to.
func (c *Client) Upstreams(ctx context.Context) (u Upstreams, err error) {
	err = c.get(ctx, "upstreams", &u)
	return u, err
}

func (c *Client) stranger(why string) error {
	return fmt.Errorf("%s is not the admin address of a chert server: %s", c.Name, why)
}

func (c *Client) get(ctx context.Context, path string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(err)
	}
	defer res.Body.Close()
	page, _, _ := strings.Cut(path, "?")
	switch t, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); {
	case res.StatusCode == http.StatusMisdirectedRequest || res.StatusCode == http.StatusForbidden:
		line, _ := io.ReadAll(io.LimitReader(res.Body, 200))
		return fmt.Errorf("%s refuses the request: %s", c.Name, Clean(strings.TrimSpace(string(line))))
	case res.StatusCode != http.StatusOK:
		return c.stranger(fmt.Sprintf("/%s was answered %d", page, res.StatusCode))
	case t != "application/json":
		return c.stranger(fmt.Sprintf("/%s is not JSON", page))
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxStats)).Decode(v); err != nil {
		return c.stranger(fmt.Sprintf("/%s cannot be read: %v", page, err))
	}
	return nil
}

// unreachable returns what a failed request means.
func (c *Client) unreachable(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		if u.Timeout() {
			return fmt.Errorf("%s does not answer within %v", c.Name, patience)
		}
		err = u.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return fmt.Errorf("cannot reach %s: %w; is a server running with --admin?", c.Name, op.Err)
	}
	return c.stranger(err.Error())
}
