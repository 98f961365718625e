package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/acme"
	"github.com/chert-http/chert/cmd/chert/internal/certs"
	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/cmd/chert/internal/derive"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
)

// protocols are those that ALPN offers, for every site. The server closes
// connections that have selected another, as those of TLS-ALPN-01 do.
var protocols = []string{"h2", "http/1.1"}

// tlsSites has the TLS of a generation, by host. Its table is immutable; what is in
// it is replaced when files change. It is nil without TLS.
type tlsSites struct {
	table   vhost.Table[*tlsSite]
	all     []*tlsSite
	auto    []string // the names for ACME
	acme    config.ACME
	trust   string         // the file of the authority of tls_self; "" if it is not used
	http1   []net.Addr     // of listeners without HTTP/2; set before the first handshake
	manager *acme.Manager  // set before the first handshake; nil if no site has tls_auto
	watched []*watchedFile // of one goroutine
	used    []*usedCert
	stop    func()
	secret  derive.Secret // of session tickets that instances share; "" for none
}

// tlsSite is one site's TLS.
type tlsSite struct {
	clientCA string // the file; "" if clients need no certificate
	optional bool   // clients may have none
	cert     func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	expires  func() time.Time // zero if it has no certificate yet
	min      uint16
	scope    string // of its session tickets, if clients need certificates
	now      atomic.Pointer[tlsState]
}

// tlsState is what a handshake uses. It is immutable, but for the keys of session tickets.
type tlsState struct {
	cfg     *tls.Config
	http1   *tls.Config // cfg without HTTP/2
	clients *certs.Pool // nil if clients need no certificate
	// period is that of the keys of session tickets; 0 if they are crypto/tls's.
	period atomic.Int64
}

// watchedFile is checked for changes from time to time.
type watchedFile struct {
	check func() (loaded bool, err error)
	what  string
}

// tlsSpec is a site of a configuration.
type tlsSpec struct {
	hosts []vhost.Pattern
	config.TLS
}

func tlsSpecs(cfg *config.Config) (all []tlsSpec) {
	for _, s := range cfg.Sites {
		all = append(all, tlsSpec{s.Hosts, s.TLS})
	}
	for _, r := range cfg.Redirects {
		all = append(all, tlsSpec{r.Hosts, r.TLS})
	}
	return all
}

// openTLS loads all certificates of cfg, or none. The sites are nil if cfg has no TLS.
func openTLS(cfg *config.Config, listen []endpoint) (*tlsSites, error) {
	s := &tlsSites{acme: cfg.ACME, stop: func() {}}
	if cfg.Cluster.Tickets {
		s.secret = cfg.Cluster.Secret
	}
	loader := tlsLoader{sites: s, listen: listen, pairs: make(map[[2]string]*atomic.Pointer[tls.Certificate])}
	var err error
	for _, spec := range tlsSpecs(cfg) {
		if !spec.On() {
			continue // no site has TLS; config has checked that
		}
		site := &tlsSite{clientCA: spec.ClientCA, optional: spec.ClientOptional, min: tls.VersionTLS12}
		if spec.Min == "1.3" {
			site.min = tls.VersionTLS13
		}
		if site.cert, err = loader.source(spec); err != nil {
			return nil, err
		}
		site.expires = s.expiryOf(spec, site.cert)
		if err := loader.clients(site); err != nil {
			return nil, err
		}
		if site.clientCA != "" {
			site.scope = fmt.Sprint(spec.hosts)
		}
		for _, h := range spec.hosts {
			s.table.Add(h, site)
		}
		s.all = append(s.all, site)
	}
	if s.all == nil {
		return nil, checkExposed(cfg, "")
	}
	if s.acme.Storage == "" && (s.auto != nil || s.trust != "") {
		if s.acme.Storage, err = defaultStorage(); err != nil {
			return nil, err
		}
	}
	if err := checkExposed(cfg, s.acme.Storage); err != nil {
		return nil, err
	}
	return s, nil
}

// expiryOf returns when the certificate of a site, which cert returns, expires.
func (s *tlsSites) expiryOf(spec tlsSpec, cert func(*tls.ClientHelloInfo) (*tls.Certificate, error)) func() time.Time {
	if spec.Auto {
		names := make([]string, len(spec.hosts))
		for i, h := range spec.hosts {
			names[i] = string(h)
		}
		return func() time.Time { return s.manager.Expiry(names) }
	}
	return func() time.Time {
		c, err := cert(nil) // which is the same for every name
		if err != nil || c == nil || c.Leaf == nil {
			return time.Time{}
		}
		return c.Leaf.NotAfter
	}
}

// expires returns when the certificate of the site with a host expires, zero if it has none.
// s may be nil.
func (s *tlsSites) expires(host vhost.Pattern) time.Time {
	if s == nil {
		return time.Time{}
	}
	if site := s.table.Get(host); site != nil {
		return site.expires()
	}
	return time.Time{}
}

// tlsLoader loads certificates, each file once.
type tlsLoader struct {
	sites  *tlsSites
	listen []endpoint
	pairs  map[[2]string]*atomic.Pointer[tls.Certificate]
}

// source returns where a site's certificate comes from.
func (l *tlsLoader) source(spec tlsSpec) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	s := l.sites
	current := new(atomic.Pointer[tls.Certificate])
	get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return current.Load(), nil }
	switch {
	case spec.Auto:
		for _, h := range spec.hosts {
			s.auto = append(s.auto, string(h))
		}
		return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return s.manager.Certificate(hello) }, nil
	case spec.Self:
		self, err := newSelf(s.acme.Storage, spec.hosts, l.listen)
		if err != nil {
			return nil, err
		}
		if err := self.issue(current); err != nil {
			return nil, err
		}
		s.trust = self.trust()
		l.used("the certificate of tls_self", current, spec.hosts)
		s.watched = append(s.watched, &watchedFile{what: "tls_self",
			check: func() (bool, error) { return self.renew(current) }})
		return get, nil
	}
	if p, ok := l.pairs[[2]string{spec.Cert, spec.Key}]; ok {
		current = p
		l.used("", current, spec.hosts)
		return get, nil
	}
	load := func() error {
		c, err := certs.Load(spec.Cert, spec.Key, time.Now())
		if err == nil {
			current.Store(c)
		}
		return err
	}
	since := certs.Stamps(spec.Cert, spec.Key)
	if err := load(); err != nil {
		return nil, err
	}
	l.pairs[[2]string{spec.Cert, spec.Key}] = current
	l.used("the certificate in "+quote(spec.Cert), current, spec.hosts)
	f := certs.NewFile(since, load, spec.Cert, spec.Key)
	s.watched = append(s.watched, &watchedFile{f.Check, quote(spec.Cert)})
	return get, nil
}

// clients loads the authorities of a site's clients, and makes its first state.
func (l *tlsLoader) clients(site *tlsSite) error {
	if site.clientCA == "" {
		site.use(nil)
		return nil
	}
	load := func() error {
		pool, err := certs.LoadPool(site.clientCA)
		if err == nil {
			site.use(pool)
		}
		return err
	}
	since := certs.Stamps(site.clientCA)
	if err := load(); err != nil {
		return err
	}
	f := certs.NewFile(since, load, site.clientCA)
	l.sites.watched = append(l.sites.watched, &watchedFile{f.Check, quote(site.clientCA)})
	return nil
}

// use makes the state for clients.
func (t *tlsSite) use(clients *certs.Pool) {
	t.now.Store(&tlsState{cfg: t.config(clients, protocols), http1: t.config(clients, protocols[1:]), clients: clients})
}

func (t *tlsSite) config(clients *certs.Pool, protocols []string) *tls.Config {
	cfg := &tls.Config{GetCertificate: t.cert, MinVersion: t.min, NextProtos: protocols}
	if clients != nil {
		cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, clients.Certs
		if t.optional {
			cfg.ClientAuth = tls.VerifyClientCertIfGiven
		}
		// Keys of its own: a ticket of another site, or of other authorities, must not
		// resume a session here without its client being verified. Without these
		// functions crypto/tls uses the keys of the listener for all sites.
		cfg.WrapSession = cfg.EncryptTicket
		cfg.UnwrapSession = cfg.DecryptTicket
	}
	return cfg
}

// refuse is for names without a site: the client gets the alert unrecognized_name
// (RFC 6066 section 3).
var refuse = &tls.Config{
	GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil },
	SessionTicketsDisabled: true,
}

// config is a tls.Config.GetConfigForClient.
func (s *tlsSites) config(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if s == nil { // a reload has ended TLS, and this is a connection from before
		return refuse, nil
	}
	if s.manager != nil && acme.IsChallenge(hello) {
		return &tls.Config{GetCertificate: s.manager.Certificate, NextProtos: []string{acme.ALPN},
			SessionTicketsDisabled: true}, nil
	}
	var local net.Addr
	if hello.Conn != nil {
		local = hello.Conn.LocalAddr()
	}
	site, ok := s.find(hello.ServerName, local)
	if !ok {
		return refuse, nil
	}
	state := site.now.Load()
	s.rotate(site, state)
	if slices.ContainsFunc(s.http1, func(l net.Addr) bool { return accepts(l, local) }) {
		return state.http1, nil
	}
	return state.cfg, nil
}

// accepts reports whether a connection with a local address is of a listener.
func accepts(listener, local net.Addr) bool {
	l, ok := listener.(*net.TCPAddr)
	c, isTCP := tcpAddr(local)
	if !ok || !isTCP {
		return local != nil && listener.Network() == local.Network() && listener.String() == local.String()
	}
	return l.Port == c.Port && (len(l.IP) == 0 || l.IP.IsUnspecified() || l.IP.Equal(c.IP))
}

// tcpAddr returns the address of a connection's listener, on whose UDP port those of HTTP/3 come.
func tcpAddr(local net.Addr) (*net.TCPAddr, bool) {
	if udp, ok := local.(*net.UDPAddr); ok {
		return &net.TCPAddr{IP: udp.IP, Port: udp.Port, Zone: udp.Zone}, true
	}
	tcp, ok := local.(*net.TCPAddr)
	return tcp, ok
}

// find returns the site of a connection. Clients that connect to an address send
// no name (RFC 6066 section 3); then it is the site of that address.
func (s *tlsSites) find(name string, local net.Addr) (*tlsSite, bool) {
	if tcp, ok := tcpAddr(local); ok && name == "" {
		if addr, ok := netip.AddrFromSlice(tcp.IP); ok {
			name = addr.Unmap().WithZone("").String()
			if strings.Contains(name, ":") {
				name = "[" + name + "]"
			}
		}
	}
	return vhost.Find(&s.table, name)
}

// guarded reports whether any site admits only clients with certificates.
func (s *tlsSites) guarded() bool {
	if s == nil {
		return false
	}
	for _, site := range s.all {
		if site.clientCA != "" {
			return true
		}
	}
	return false
}

// watch loads files again when they change, until close. It warns at once and once
// a day.
func (s *tlsSites) watch(said, warn func(string), failed func(error)) {
	var warned time.Time
	remind := func() {
		now := time.Now()
		if now.Sub(warned) < 24*time.Hour {
			return
		}
		warned = now
		for _, text := range s.warnings(now) {
			warn(text)
		}
	}
	remind()
	if len(s.watched) == 0 {
		return
	}
	done := make(chan struct{})
	s.stop = sync.OnceFunc(func() { close(done) })
	go func() {
		t := time.NewTicker(certs.Interval)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
			}
			for _, w := range s.watched {
				if loaded, err := w.check(); err != nil {
					failed(err)
				} else if loaded {
					said(w.what)
				}
			}
			remind()
		}
	}()
}

func (s *tlsSites) close() {
	if s != nil {
		s.stop()
	}
}

// defaultStorage is the folder for certificates: systemd's StateDirectory, or the
// user's folder for configurations.
func defaultStorage() (string, error) {
	if dir, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("there is no folder for certificates (%w); give one with --tls-storage or tls_storage",
			err)
	}
	return filepath.Join(dir, "chert"), nil
}

// checkExposed fails if a folder that is served has a secret.
func checkExposed(cfg *config.Config, storage string) error {
	for _, folder := range cfg.Folders() {
		for _, other := range tlsSpecs(cfg) {
			if folder.Exposes(other.Key) {
				return fmt.Errorf("the key %s is in the folder %s, which is served, so clients could read it; move it "+
					"elsewhere", quote(other.Key), quote(folder.Root))
			}
		}
		if folder.Exposes(storage) {
			return fmt.Errorf("the folder of certificates %s is in the folder %s, which is served, so clients could "+
				"read its keys; choose another", quote(storage), quote(folder.Root))
		}
	}
	return nil
}
