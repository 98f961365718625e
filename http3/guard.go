package http3

import (
	"crypto/tls"
	"crypto/x509"
	"errors"

	"github.com/chert-http/chert/internal/exec"
)

// This file is the functions of a tls.Config, which crypto/tls calls on goroutines of its own: a panic there would
// end the process. Here it ends the handshake, as over TCP.

var errPanic = errors.New("a function of TLSConfig has panicked")

// call calls such a function.
func (s *server) call(f func() error) (err error) {
	err = errPanic
	exec.Call(func() { err = f() }, func(e exec.End) {
		if v, ok := e.Panic(); ok {
			s.host.Logf("http: panic in a TLS handshake of QUIC: %v\n%s", v, exec.Stack())
		}
	})
	return err
}

// guard replaces the functions of cfg, except for GetConfigForClient.
func (s *server) guard(cfg *tls.Config) {
	cfg.GetCertificate = guarded(s, cfg.GetCertificate)
	cfg.GetEncryptedClientHelloKeys = guarded(s, cfg.GetEncryptedClientHelloKeys)
	if f := cfg.VerifyConnection; f != nil {
		cfg.VerifyConnection = func(state tls.ConnectionState) error {
			return s.call(func() error { return f(state) })
		}
	}
	if f := cfg.VerifyPeerCertificate; f != nil {
		cfg.VerifyPeerCertificate = func(raw [][]byte, chains [][]*x509.Certificate) error {
			return s.call(func() error { return f(raw, chains) })
		}
	}
	if f := cfg.WrapSession; f != nil {
		cfg.WrapSession = func(state tls.ConnectionState, session *tls.SessionState) (ticket []byte, err error) {
			err = s.call(func() (err error) { ticket, err = f(state, session); return err })
			return ticket, err
		}
	}
	if f := cfg.UnwrapSession; f != nil {
		cfg.UnwrapSession = func(ticket []byte, state tls.ConnectionState) (session *tls.SessionState, err error) {
			err = s.call(func() (err error) { session, err = f(ticket, state); return err })
			return session, err
		}
	}
}

// guarded is f, or nil if that is.
func guarded[T any](s *server, f func(*tls.ClientHelloInfo) (T, error)) func(*tls.ClientHelloInfo) (T, error) {
	if f == nil {
		return nil
	}
	return func(hello *tls.ClientHelloInfo) (v T, err error) {
		err = s.call(func() (err error) { v, err = f(hello); return err })
		return v, err
	}
}
