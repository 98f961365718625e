package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// defaultListen is reachable from this machine only. Whoever tries chert for the first time opens a browser beside it;
// to open a folder to the network should be somebody's decision.
var defaultListen = endpoint{network: "tcp", address: "127.0.0.1:8080"}

// endpoint is one value of --listen, checked.
type endpoint struct {
	network string // "tcp" or "unix"
	address string // host:port, or the socket's path
}

func (e endpoint) String() string {
	if e.network == "unix" {
		return "unix:" + e.address
	}
	return e.address
}

// port is that of a TCP endpoint, "" if it has none of its own choice.
func (e endpoint) port() string {
	_, port, err := net.SplitHostPort(e.address)
	if e.network != "tcp" || err != nil || port == "0" {
		return ""
	}
	return port
}

// parseEndpoint checks the form only; whether the host exists and the port is free is known when it is opened.
func parseEndpoint(s string) (endpoint, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if path == "" {
			return endpoint{}, errors.New("want a path after unix:, as in unix:/run/chert.sock")
		}
		// Package net takes a leading @ for a name outside the file system.
		if strings.HasPrefix(path, "@") {
			return endpoint{}, errors.New("want a path after unix:; abstract sockets are not supported")
		}
		return endpoint{network: "unix", address: path}, nil
	}
	_, port, err := net.SplitHostPort(s)
	if err != nil || strings.Contains(s, "/") { // a URL splits as well
		if isPort(s) {
			return endpoint{}, fmt.Errorf("want host:port, :port or unix:/path; did you mean :%s?", s)
		}
		return endpoint{}, errors.New("want host:port, :port or unix:/path")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return endpoint{}, errors.New("want a port from 0 to 65535 (0 takes a free one)")
	}
	return endpoint{network: "tcp", address: s}, nil
}

// endpoints is the value of a repeatable --listen. Empty means defaultListen.
type endpoints []endpoint

func (e *endpoints) String() string {
	var all []string
	for _, one := range e.orDefault() {
		all = append(all, one.String())
	}
	return strings.Join(all, ",")
}

// Type is the word that stands for the value in the help.
func (e *endpoints) Type() string { return "address" }

func (e *endpoints) Set(s string) error {
	one, err := parseEndpoint(s)
	if err != nil {
		return err
	}
	// A port that the system chooses is another one each time.
	if (one.network == "unix" || one.port() != "") && slices.Contains(*e, one) {
		return errors.New("it is there already")
	}
	*e = append(*e, one)
	return nil
}

func (e *endpoints) orDefault() []endpoint {
	if len(*e) == 0 {
		return []endpoint{defaultListen}
	}
	return *e
}

// openFunc opens a listener; it is chert.Server.Listen. It must fail if anybody listens there, even another chert whose
// sockets could share the port.
type openFunc func(network, address string) (net.Listener, error)

// listener is an open endpoint. The server is given the Listener inside, because it treats its own kind better than
// one it does not know.
type listener struct {
	net.Listener
	remove func() // clears what Close may leave behind; may be nil
}

// close may be called more than once, and after the server has closed the Listener.
func (l listener) close() {
	l.Listener.Close()
	if l.remove != nil {
		l.remove()
	}
}

func listen(open openFunc, e endpoint) (listener, error) {
	if e.network == "unix" {
		return listenUnix(open, e)
	}
	l, err := open(e.network, e.address)
	if err != nil {
		return listener{}, explainTCP(e, err)
	}
	return listener{Listener: l}, nil
}

// explainTCP turns an error of the system into a line that says what to do.
func explainTCP(e endpoint, err error) error {
	host, port, _ := net.SplitHostPort(e.address)
	n, _ := strconv.Atoi(port)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case isAddrInUse(err):
		return fmt.Errorf("%s is already in use; stop the program that holds it or choose another port, such as --listen %s",
			e, net.JoinHostPort(host, strconv.Itoa(otherPort(n))))
	case errors.Is(err, fs.ErrPermission) && n < 1024:
		return fmt.Errorf("no permission to listen on %s; ports below 1024 need privileges, others do not: try --listen %s",
			e, net.JoinHostPort(host, "8080"))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission to listen on %s; choose another port with --listen", e)
	case isAddrUnknown(err):
		return fmt.Errorf("cannot listen on %s, which is no address of this machine; --listen :%s takes all it has", e, port)
	case isDNS:
		return fmt.Errorf("cannot listen on %s: %s; give an address of this machine, or --listen :%s for all it has",
			e, dns.Err, port)
	}
	return fmt.Errorf("cannot listen on %s: %w", e, err)
}

// otherPort proposes a port near n. It may be taken as well; then its own message proposes the next.
func otherPort(n int) int {
	if n < 65535 {
		return n + 1
	}
	return n - 1
}

// showURL is what to type into a browser to reach addr, or the socket's path in the form of --listen.
func showURL(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return addr.Network() + ":" + addr.String()
	}
	host := tcp.IP.String()
	if len(tcp.IP) == 0 || tcp.IP.IsUnspecified() {
		host = "localhost" // 0.0.0.0 and [::] are nowhere to go to
	} else if tcp.Zone != "" {
		host += "%" + tcp.Zone
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, strconv.Itoa(tcp.Port)), Path: "/"}
	return u.String()
}
