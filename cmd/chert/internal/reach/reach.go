package reach

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// A Target is a server as a client of the command line names it.
type Target struct {
	// Name is the target for messages, without a password.
	Name string
	// URL is what to request: scheme and host are never empty, and of a unix socket they are http://localhost.
	URL *url.URL
	// Socket is the path of a unix socket to connect to; "" for the host of URL.
	Socket string
}

// Parse reads a URL of http or https, "host:port", a port of this machine such as "8080" or ":8080", or "unix:/path".
func Parse(where string) (Target, error) {
	if path, ok := strings.CutPrefix(where, "unix:"); ok {
		if path == "" {
			return Target{}, errors.New("want unix:/path")
		}
		return Target{Name: where, URL: &url.URL{Scheme: "http", Host: "localhost", Path: "/"}, Socket: path}, nil
	}
	if !strings.Contains(where, "://") {
		if port, err := strconv.ParseUint(strings.TrimPrefix(where, ":"), 10, 16); err == nil {
			where = net.JoinHostPort("127.0.0.1", strconv.FormatUint(port, 10))
		}
		if !strings.Contains(where, ":") {
			return Target{}, fmt.Errorf("%q has no port; want a URL, host:port, or a port of this machine", where)
		}
		where = "http://" + where
	}
	u, err := url.Parse(where)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return Target{}, fmt.Errorf("%q is no address; want a URL, host:port, or a port of this machine", where)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	u.Fragment = "" // it is never sent, RFC 9110 section 4.2.5
	return Target{Name: u.Redacted(), URL: u}, nil
}
