package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/authority"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
)

// self makes the certificates of --tls-self. The authority is kept in a folder, so
// that clients trust it after a restart too; the certificate is in memory only.
type self struct {
	dir   string
	names authority.Names // of the certificate
	next  time.Time       // of an attempt to renew that failed
}

// newSelf prepares the certificate of a site. Its names are those of hosts and, for
// "*", those that reach the addresses of listen.
func newSelf(storage string, hosts []vhost.Pattern, listen []endpoint) (*self, error) {
	if storage == "" {
		var err error
		if storage, err = defaultStorage(); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, h := range hosts {
		if h == "*" {
			names = append(names, localNames(listen)...)
		} else {
			names = append(names, string(h))
		}
	}
	n, err := authority.ParseNames(names)
	if err != nil {
		return nil, fmt.Errorf("cannot make a certificate: %w", err)
	}
	return &self{dir: filepath.Join(storage, "self"), names: n}, nil
}

// localNames are those under which listeners are reached: names of this machine,
// and private addresses. Public ones are not the authority's to sign for.
func localNames(listen []endpoint) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	all := false
	for _, e := range listen {
		host, _, _ := net.SplitHostPort(e.address)
		addr, err := netip.ParseAddr(host)
		switch {
		case e.network != "tcp":
		case e.all():
			all = true
		case err == nil:
			names = append(names, addr.WithZone("").String())
		default:
			names = append(names, host)
		}
	}
	if !all {
		return names
	}
	addrs, _ := net.InterfaceAddrs() // without them the certificate is for fewer names
	for _, ip := range reachable(addrs) {
		if ip.IsPrivate() {
			names = append(names, ip.String())
		}
	}
	if host, err := os.Hostname(); err == nil && !strings.Contains(host, ".") {
		if local := host + ".local"; validName(local) { // of multicast DNS
			names = append(names, local)
		}
	}
	return names
}

func validName(name string) bool {
	_, err := authority.ParseNames([]string{name})
	return err == nil
}

// trust is the file that clients need.
func (s *self) trust() string { return filepath.Join(s.dir, caCert) }

// issue makes a certificate, and the authority if there is none.
func (s *self) issue(to *atomic.Pointer[tls.Certificate]) error {
	now := time.Now()
	o := certOptions{dir: s.dir}
	ca, files, err := o.authority(s.names, now)
	if err == nil && files != nil {
		if err = os.MkdirAll(s.dir, 0o700); err == nil {
			err = writeFiles(s.dir, files, nil, false)
		} else {
			err = explainWrite(s.dir, err)
		}
	}
	if err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "--dir", "--tls-storage"))
	}
	pair, _, err := ca.Server(s.names, authority.MaxDays, now)
	if _, ok := errors.AsType[*authority.NotPermittedError](err); ok {
		return fmt.Errorf("%w: %s was made for other names; remove it and %s, and let clients trust the new one", err,
			quote(s.trust()), quote(filepath.Join(s.dir, caKey)))
	}
	if err != nil {
		return fmt.Errorf("cannot sign with %s: %w", quote(s.trust()), err)
	}
	c, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return err
	}
	to.Store(&c)
	return nil
}

// renew replaces a certificate of which less than a third of its time is left.
func (s *self) renew(to *atomic.Pointer[tls.Certificate]) (bool, error) {
	leaf, now := to.Load().Leaf, time.Now()
	if leaf.NotAfter.Sub(now) > leaf.NotAfter.Sub(leaf.NotBefore)/3 || now.Before(s.next) {
		return false, nil
	}
	s.next = now.Add(24 * time.Hour) // also if it worked: an authority that ends soon gives no longer time
	if err := s.issue(to); err != nil {
		return false, err
	}
	return true, nil
}
