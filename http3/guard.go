package http3

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/chert-http/chert/internal/exec"
)

// This file is the functions and keys of a tls.Config, which crypto/tls calls on goroutines of its own: a panic there
// would end the process, and the end of such a goroutine leave quic-go's waiting for good. Here both end the
// handshake, as over TCP. Those of Time and Rand do not: Time has no error to return, and for one of Rand's crypto/tls
// itself panics where it makes keys of tickets. The system's are used instead.

var errPanic = errors.New("a function of TLSConfig has not returned")

// call calls such a function, on another goroutine, which it may end.
func (s *server) call(f func() error) (err error) {
	err = errPanic
	done := make(chan struct{})
	go func() {
		defer close(done)
		exec.Call(func() { err = f() }, func(e exec.End) {
			if v, ok := e.Panic(); ok {
				s.host.Logf("http: panic in a TLS handshake of QUIC: %v\n%s", v, exec.Stack())
			}
		})
	}()
	<-done
	return err
}

// guard replaces the functions and keys of cfg, except for GetConfigForClient.
func (s *server) guard(cfg *tls.Config) {
	cfg.Certificates = slices.Clone(cfg.Certificates)
	for i := range cfg.Certificates {
		cfg.Certificates[i] = *s.guardKey(&cfg.Certificates[i])
	}
	if get := guarded(s, cfg.GetCertificate); get != nil {
		cfg.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			cert, err := get(hello)
			return s.guardKey(cert), err
		}
	}
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
	s.guardSources(cfg)
}

// guardSources replaces what cfg has random bytes and the time from, and what it logs keys to.
func (s *server) guardSources(cfg *tls.Config) {
	if r := cfg.Rand; r != nil {
		cfg.Rand = guardedIO(func(p []byte) (n int, err error) {
			if err = s.call(func() (err error) { n, err = r.Read(p); return err }); err != nil {
				return rand.Read(p)
			}
			return n, nil
		})
	}
	if f := cfg.Time; f != nil {
		cfg.Time = func() (t time.Time) {
			if s.call(func() error { t = f(); return nil }) != nil {
				return time.Now()
			}
			return t
		}
	}
	if w := cfg.KeyLogWriter; w != nil {
		cfg.KeyLogWriter = guardedIO(func(p []byte) (n int, err error) {
			err = s.call(func() (err error) { n, err = w.Write(p); return err })
			return n, err
		})
	}
}

// guardedIO is an io.Reader, or an io.Writer.
type guardedIO func(p []byte) (int, error)

// Read implements io.Reader.
func (f guardedIO) Read(p []byte) (int, error) { return f(p) }

// Write implements io.Writer.
func (f guardedIO) Write(p []byte) (int, error) { return f(p) }

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

// guardKey is cert with its key guarded, if that is not one of the standard library.
func (s *server) guardKey(cert *tls.Certificate) *tls.Certificate {
	if cert == nil {
		return nil
	}
	switch key := cert.PrivateKey.(type) {
	case *rsa.PrivateKey, *ecdsa.PrivateKey, ed25519.PrivateKey, *ed25519.PrivateKey: // the last is an error
	case crypto.Signer:
		own := *cert
		own.PrivateKey = guardedKey{s, key}
		return &own
	}
	return cert
}

// guardedKey is a key whose methods are called by call. TLS 1.3 uses no others.
type guardedKey struct {
	s   *server
	key crypto.Signer
}

var _ crypto.MessageSigner = guardedKey{}

// Public implements crypto.Signer.
func (k guardedKey) Public() (p crypto.PublicKey) {
	k.s.call(func() error { p = k.key.Public(); return nil })
	return p
}

// Sign implements crypto.Signer.
func (k guardedKey) Sign(rand io.Reader, digest []byte, o crypto.SignerOpts) (signature []byte, err error) {
	err = k.s.call(func() (err error) { signature, err = k.key.Sign(rand, digest, o); return err })
	return signature, err
}

// SignMessage implements crypto.MessageSigner.
func (k guardedKey) SignMessage(rand io.Reader, msg []byte, o crypto.SignerOpts) (signature []byte, err error) {
	err = k.s.call(func() (err error) { signature, err = crypto.SignMessage(k.key, rand, msg, o); return err })
	return signature, err
}
