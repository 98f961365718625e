package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
)

// defaultListen is reachable from this machine only. The first use is with a browser on the same machine; opening a
// folder to the network should be an explicit decision.
var defaultListen = endpoint{network: "tcp", address: "127.0.0.1:8080"}

// endpoint is one value of --listen, checked.
type endpoint struct {
	network string // "tcp", "unix" or "fd"
	address string // host:port, the socket's path, or the name of a socket that was passed
	bare    bool   // the port alone was given
	access  access // to the socket's file
	tls     bool
	plain   bool // it is not to speak TLS, whatever the sites have
	http1   bool // no HTTP/2
	http3   bool // HTTP/3 too
	// protocols: the file names them, so its http3 is not for the address.
	protocols bool
	// As of config.Listen; nil if it has none.
	proxies, headers *config.Proxies
	// upgrade: plain HTTP is redirected to TLS.
	upgrade bool
}

func (e endpoint) String() string {
	if e.network == "unix" {
		return "unix:" + e.address + e.access.String()
	}
	if e.network == "fd" {
		return "fd:" + e.address
	}
	return e.address
}

// same reports whether both are the same address, which cannot be opened twice. A socket's path may be written in
// several ways, also through links to its folder. The result may change with the file system.
func (e endpoint) same(o endpoint) bool {
	if e.network != o.network || e.address == o.address {
		return e.network == o.network
	}
	if e.network != "unix" {
		return false
	}
	dir, name := filepath.Split(e.address)
	otherDir, otherName := filepath.Split(o.address)
	folder, err := os.Stat(cmp.Or(dir, "."))
	other, otherErr := os.Stat(cmp.Or(otherDir, "."))
	if err != nil || otherErr != nil {
		return absolute(e.address) == absolute(o.address) // the folder is yet to be made
	}
	return name == otherName && os.SameFile(folder, other)
}

// port returns the port of a TCP endpoint, "" if the system chooses it.
func (e endpoint) port() string {
	_, port, err := net.SplitHostPort(e.address)
	if e.network != "tcp" || err != nil || port == "0" {
		return ""
	}
	return port
}

// overlaps reports whether both are TCP addresses of which the system opens only one: the same address, perhaps by
// different names, or one that includes the other.
func (e endpoint) overlaps(o endpoint) bool {
	if e.port() == "" || e.port() != o.port() {
		return false
	}
	if e.all() || o.all() {
		return true
	}
	a, err := net.ResolveTCPAddr(e.network, e.address)
	b, otherErr := net.ResolveTCPAddr(o.network, o.address)
	return err == nil && otherErr == nil && a.IP.Equal(b.IP)
}

// errListen describes the form of an endpoint.
var errListen = errors.New("want host:port, :port, a port, unix:/path or fd:NAME")

// parseEndpoint checks the form only; whether the host exists and the port is free is known when the endpoint is
// opened.
func parseEndpoint(s string) (endpoint, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		return parseSocket(path)
	}
	if name, ok := strings.CutPrefix(s, "fd:"); ok {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == ':' }) {
			return endpoint{}, errors.New("want the name of a socket after fd:, as in fd:web")
		}
		return endpoint{network: "fd", address: name}, nil
	}
	bare := isPort(s)
	if bare { // no host was given
		s = net.JoinHostPort("127.0.0.1", s)
	}
	_, port, err := net.SplitHostPort(s)
	if err != nil || strings.Contains(s, "/") { // a URL splits as well
		return endpoint{}, errListen
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return endpoint{}, errors.New("want a port from 0 to 65535 (0 takes a free one)")
	}
	return endpoint{network: "tcp", address: s, bare: bare}, nil
}

// endpoints is the value of a repeatable --listen. Empty means defaultListen.
type endpoints []endpoint

func (e *endpoints) String() string {
	if len(*e) == 0 {
		return defaultListen.String()
	}
	var all []string
	for _, one := range *e {
		all = append(all, one.String())
	}
	return strings.Join(all, ",")
}

// Type is the name of the value in the help.
func (e *endpoints) Type() string { return "address" }

func (e *endpoints) Set(s string) error {
	one, err := parseEndpoint(s)
	if err != nil {
		return err
	}
	for _, other := range *e {
		if err := one.clash(other); err != nil {
			return err
		}
	}
	*e = append(*e, one)
	return nil
}

// clash explains why both cannot be opened.
func (e endpoint) clash(other endpoint) error {
	switch {
	case e.network != other.network:
		return nil
	case e.network == "tcp" && (e.port() == "" || e.port() != other.port()):
		return nil // a port that the system chooses is different each time
	case e.same(other):
		return errors.New("it is given already")
	case other.all():
		return fmt.Errorf("%s includes it already, as every address of this machine", other)
	case e.all():
		return fmt.Errorf("it is every address of this machine, and %s is given already", other)
	}
	return nil
}

// all reports whether e is every address of this machine. Those of IPv4 and of IPv6 count as one: chert opens neither
// beside the other.
func (e endpoint) all() bool {
	host, _, _ := net.SplitHostPort(e.address)
	return e.network == "tcp" && (host == "" || host == "0.0.0.0" || host == "::")
}

// isAt reports whether a connection to an address, as that of a server of an upstream, comes to e.
func (e endpoint) isAt(address string) bool {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return e.same(endpoint{network: "unix", address: path})
	}
	host, port, _ := net.SplitHostPort(address)
	if e.network != "tcp" || port != e.port() {
		return false
	}
	own, _, _ := net.SplitHostPort(e.address)
	ip := net.ParseIP(host)
	return host == own || host == "localhost" && own == "127.0.0.1" ||
		e.all() && (host == "localhost" || ip.IsLoopback() || ip.IsUnspecified())
}

// openFunc opens a listener; it is chert.Server.Listen. It must fail if another process listens there, even another
// chert whose sockets could share the port.
type openFunc func(network, address string) (net.Listener, error)

// listener is an open endpoint. The server receives the Listener inside, because it supports its own type better than
// an unknown one.
type listener struct {
	net.Listener
	file         *socketFile // nil if it has none
	tls, upgrade bool        // as of its endpoint
	drop         func()      // no other process is to inherit it; nil for TCP
}

// url is showURL of the listener.
func (l listener) url() string {
	url := showURL(l.Addr())
	if rest, ok := strings.CutPrefix(url, "http:"); ok && l.tls {
		return "https:" + rest
	}
	return url
}

// close may be called more than once, and after the server has closed the Listener.
func (l listener) close() {
	l.unlink()
	if l.drop != nil {
		l.drop()
	}
	l.Listener.Close()
}

// unlink removes the socket's file, if there is one. It comes before the Listener is closed.
func (l listener) unlink() {
	if l.file != nil {
		l.file.remove()
	}
}

func listen(open openFunc, e endpoint) (l listener, err error) {
	switch e.network {
	case "unix":
		l, err = listenUnix(open, e)
	case "fd":
		if l.Listener, err = open(e.network, e.address); err != nil {
			text := strings.TrimPrefix(err.Error(), "chert: Upgrader: Listen: ")
			err = fmt.Errorf("cannot listen on %s: %s; systemd passes the sockets of a unit chert.socket, by the name "+
				"FileDescriptorName= or the number of the descriptor, from 3 on", e, text)
		}
	default:
		if l.Listener, err = open(e.network, e.address); err != nil {
			err = explainTCP(e, err)
		}
	}
	if err != nil {
		return listener{}, err
	}
	l.tls, l.upgrade = e.tls, e.upgrade
	return l, nil
}

// inUseError is the line of explainTCP for an address that is in use.
type inUseError string

func (e inUseError) Error() string { return string(e) }

// explainTCP turns a system error into a line that suggests a remedy.
func explainTCP(e endpoint, err error) error {
	if e.upgrade {
		plain := e
		plain.upgrade = false
		text := strings.ReplaceAll(explainTCP(plain, err).Error(), "--listen", "--http-redirect")
		if isAddrInUse(err) {
			return inUseError(text)
		}
		return errors.New(text)
	}
	host, port, _ := net.SplitHostPort(e.address)
	n, _ := strconv.Atoi(port)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case isAddrInUse(err):
		return inUseError(fmt.Sprintf("%s is already in use; stop the program that holds it or choose another port, "+
			"such as --listen %s",
			e, net.JoinHostPort(host, strconv.Itoa(otherPort(n)))))
	case errors.Is(err, fs.ErrPermission) && n < 1024:
		return fmt.Errorf("no permission to listen on %s; ports below 1024 need privileges, others do not: try "+
			"--listen %s",
			e, net.JoinHostPort(host, "8080"))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission to listen on %s; choose another port with --listen", e)
	case isAddrUnknown(err):
		return fmt.Errorf("cannot listen on %s, which is no address of this machine; --listen :%s takes all it has", e,
			port)
	case isDNS:
		return fmt.Errorf("cannot listen on %s: %s; give an address of this machine, or --listen :%s for all it has",
			e, dns.Err, port)
	}
	return fmt.Errorf("cannot listen on %s: %w", e, err)
}

// otherPort suggests a port near n. It may be in use as well; then its own message suggests the next.
func otherPort(n int) int {
	if n < 65535 {
		return n + 1
	}
	return n - 1
}

// showURL returns the URL at which a browser reaches addr, or the socket's path in the form of --listen.
func showURL(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return addr.Network() + ":" + addr.String()
	}
	host := tcp.IP.String()
	if len(tcp.IP) == 0 || tcp.IP.IsUnspecified() {
		host = "localhost" // 0.0.0.0 and [::] are no destinations
	} else if tcp.Zone != "" {
		host += "%" + tcp.Zone
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, strconv.Itoa(tcp.Port)), Path: "/"}
	return u.String()
}

// networkLine lists the URLs at which other machines reach listeners that are open to the network: a line after the
// start line, "" if there are none. interfaces is net.InterfaceAddrs.
func networkLine(ls []listener, interfaces func() ([]net.Addr, error)) string {
	var urls []string
	for _, l := range ls {
		tcp, ok := l.Addr().(*net.TCPAddr)
		if !ok || len(tcp.IP) != 0 && !tcp.IP.IsUnspecified() || l.upgrade {
			continue
		}
		addrs, err := interfaces()
		if err != nil {
			continue // it is only a convenience
		}
		for _, ip := range reachable(addrs) {
			at := listener{Listener: address{&net.TCPAddr{IP: ip, Port: tcp.Port}}, tls: l.tls}
			urls = append(urls, at.url())
		}
	}
	if urls == nil {
		return ""
	}
	return "\nchert: in the network: " + strings.Join(urls, " and ")
}

// address is a listener of which only the address is known.
type address struct{ addr net.Addr }

func (address) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (address) Close() error              { return nil }
func (l address) Addr() net.Addr          { return l.addr }

// mostShown is how many addresses of a machine are listed. One that runs containers has many.
const mostShown = 4

// reachable selects the addresses for other machines: those of IPv4 or, if there are none, of IPv6.
func reachable(addrs []net.Addr) []net.IP {
	var four, six []net.IP
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		switch {
		case !ok || !n.IP.IsGlobalUnicast(): // loopback, link-local
		case n.IP.To4() != nil:
			four = append(four, n.IP)
		default:
			six = append(six, n.IP)
		}
	}
	if four == nil {
		four = six
	}
	return four[:min(len(four), mostShown)]
}
