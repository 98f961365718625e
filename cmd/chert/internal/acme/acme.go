package acme

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
)

// ALPN is the protocol of TLS-ALPN-01 challenges.
const ALPN = "acme-tls/1"

// Options configure a Manager.
type Options struct {
	Storage string // folder of accounts, keys and certificates
	Email   string // for notices of the authority; "" for none
	CA      string // URL of the directory; "": Let's Encrypt
	Staging bool   // Let's Encrypt's authority for tries, instead of CA
	// Redis is the URL of the store through which instances share what is in the folder,
	// encrypted with Key; "" for none.
	Redis string
	Key   [32]byte
	// Roots are trusted for the connection to CA; nil: those of the system.
	Roots *x509.CertPool
	// Where the server receives challenges of TLS-ALPN-01 and of HTTP-01, which is not
	// used if HTTPPort is 0. Host may be empty, for all addresses.
	Host              string
	TLSPort, HTTPPort int
	// How often certificates are checked, and how much of their lifetime is left when
	// they are renewed. 0: certmagic's defaults, ten minutes and a third.
	Check       time.Duration
	RenewalRest float64
	Logger      *slog.Logger
}

// A Manager has the certificates of a set of names. It is safe for concurrent use.
type Manager struct {
	cfg    *certmagic.Config
	cache  *certmagic.Cache
	issuer *certmagic.ACMEIssuer
	ctx    context.Context
	cancel context.CancelFunc
	dir    string        // Options.Storage
	shared *redisStorage // nil for none
	log    *slog.Logger

	mu    sync.Mutex
	names map[string]context.CancelFunc // ends attempts
}

// New prepares the folder; it does not use the network.
func New(o Options) (*Manager, error) {
	if err := prepare(o.Storage); err != nil {
		return nil, err
	}
	logger := zap.New(&core{o.Logger})
	m := &Manager{names: make(map[string]context.CancelFunc), dir: o.Storage, log: o.Logger}
	var storage certmagic.Storage = folder{&certmagic.FileStorage{Path: o.Storage}}
	if o.Redis != "" {
		var err error
		if m.shared, err = newRedisStorage(o.Redis, o.Key, o.Storage); err != nil {
			return nil, err
		}
		storage = m.shared
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert:   func(certmagic.Certificate) (*certmagic.Config, error) { return m.cfg, nil },
		RenewCheckInterval: o.Check,
		Logger:             logger,
	})
	m.cfg = certmagic.New(m.cache, certmagic.Config{
		Storage:            storage,
		RenewalWindowRatio: o.RenewalRest,
		OnEvent:            (&reporter{log: o.Logger}).event,
		ShouldEmitFunc: func(event string) bool {
			return strings.HasPrefix(event, "cert_") || event == "cached_managed_cert"
		},
		Logger: logger,
	})
	ca := o.CA
	switch {
	case o.Staging:
		ca = certmagic.LetsEncryptStagingCA
	case ca == "":
		ca = certmagic.LetsEncryptProductionCA
	}
	m.issuer = certmagic.NewACMEIssuer(m.cfg, certmagic.ACMEIssuer{
		CA: ca, Email: o.Email, Agreed: true, TrustedRoots: o.Roots,
		ListenHost: o.Host, AltTLSALPNPort: o.TLSPort, AltHTTPPort: o.HTTPPort, DisableHTTPChallenge: o.HTTPPort == 0,
		Logger: logger,
	})
	m.cfg.Issuers = []certmagic.Issuer{m.issuer}
	return m, nil
}

// prepare makes the folder, which other users must not read.
func prepare(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".chert-"); err == nil {
			f.Close()
			err = os.Remove(f.Name())
		}
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission to write to %q, where the certificates are kept; choose another folder", dir)
	case err != nil:
		return fmt.Errorf("cannot keep certificates in %q: %w; choose another folder", dir, err)
	}
	return nil
}

// Manage makes names the ones that m has certificates for: those in the storage as
// soon as they are loaded, others as soon as the authority has issued them. Attempts
// that fail are repeated, less and less often.
func (m *Manager) Manage(names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var gone []certmagic.SubjectIssuer
	for name, cancel := range m.names {
		if !slices.Contains(names, name) {
			cancel()
			delete(m.names, name)
			gone = append(gone, certmagic.SubjectIssuer{Subject: name})
		}
	}
	m.cache.RemoveManaged(gone)
	for _, name := range names {
		if m.names[name] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(m.ctx)
		m.names[name] = cancel
		go m.begin(ctx, name)
	}
}

const (
	// How long begin pauses after a failure: at first, and at most.
	leastPause = time.Second
	mostPause  = time.Minute
	// maxDamaged is how often in succession a certificate is loaded that is damaged, before another is ordered.
	maxDamaged = 3
)

// begin loads the certificate of a name, or obtains it. certmagic's ManageAsync repeats only what the authority
// refuses: it gives a name up, for as long as the process runs, if the storage fails. A failure is logged again only
// when it is another. One that has been revoked is replaced when certmagic looks at all that it has.
func (m *Manager) begin(ctx context.Context, name string) {
	defer m.begun(ctx, name)
	said, damaged := "", 0
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		cert, err := m.cfg.CacheManagedCertificate(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			if err = m.cfg.ObtainCertAsync(ctx, name); err == nil {
				cert, err = m.cfg.CacheManagedCertificate(ctx, name)
			}
		}
		if err == nil && cert.NeedsRenewal(m.cfg) {
			old := cert.Hash()
			if err = m.cfg.RenewCertAsync(ctx, name, false); err == nil {
				cert, err = m.cfg.CacheManagedCertificate(ctx, name)
			}
			if err == nil && cert.Hash() != old {
				m.cache.Remove([]string{old})
			}
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		if !m.damaged(ctx, name) {
			damaged = 0
		} else if damaged++; damaged < maxDamaged {
			err = fmt.Errorf("what is stored in %q is damaged: %w", m.place(name), err)
		} else if err = m.discard(ctx, name); err == nil {
			m.log.Warn("acme: another certificate for " + name + " is ordered, as the one that is stored is damaged")
			continue
		}
		if text := oneLine(err); text != said {
			said = text
			m.log.Error("acme: cannot get the certificate for "+name+"; it will be tried again", "error", text)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// place is the folder of a name's certificate, or its key in the store.
func (m *Manager) place(name string) string {
	key := certmagic.StorageKeys.CertsSitePrefix(m.issuer.IssuerKey(), name)
	if m.shared != nil {
		return key
	}
	return filepath.Join(m.dir, filepath.FromSlash(key))
}

// files are the keys of what is stored of a name: the certificate, its private key, and what is known of it.
func (m *Manager) files(name string) [3]string {
	keys, issuer := certmagic.StorageKeys, m.issuer.IssuerKey()
	return [...]string{keys.SiteCert(issuer, name), keys.SitePrivateKey(issuer, name), keys.SiteMeta(issuer, name)}
}

// damaged reports whether everything of a name is stored, and a part of it is not what it should be. That the parts do
// not belong together may be because another instance is storing others.
func (m *Manager) damaged(ctx context.Context, name string) bool {
	var all [3][]byte
	for i, key := range m.files(name) {
		var err error
		if all[i], err = m.cfg.Storage.Load(ctx, key); err != nil {
			return false
		}
	}
	for _, text := range all[:2] {
		if block, _ := pem.Decode(text); block == nil {
			return true
		}
	}
	return !json.Valid(all[2])
}

// discard removes what is stored of a name.
func (m *Manager) discard(ctx context.Context, name string) error {
	for _, key := range m.files(name) {
		if err := m.cfg.Storage.Delete(ctx, key); err != nil {
			return fmt.Errorf("cannot remove the damaged certificate in %q: %w", m.place(name), err)
		}
	}
	return nil
}

// begun removes what begin has loaded although its name had gone.
func (m *Manager) begun(ctx context.Context, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil && m.names[name] == nil {
		m.cache.RemoveManaged([]certmagic.SubjectIssuer{{Subject: name}})
	}
}

// Certificate is a tls.Config.GetCertificate for the names, and for challenges.
func (m *Manager) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if IsChallenge(hello) && !m.has(hello.ServerName) {
		return nil, nil // certmagic would search its folder, and log it, for any client
	}
	c, err := m.cfg.GetCertificate(hello)
	if err != nil {
		return nil, err // certmagic returns a certificate as well, which is empty
	}
	return c, nil
}

func (m *Manager) has(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.names[strings.ToLower(name)] != nil
}

// Expiry returns when the first of the certificates for names expires, zero if one of them has
// none yet.
func (m *Manager) Expiry(names []string) (first time.Time) {
	for _, name := range names {
		var last time.Time // of this name, which may have been renewed
		for _, c := range m.cache.AllMatchingCertificates(name) {
			if c.Leaf != nil && c.Leaf.NotAfter.After(last) {
				last = c.Leaf.NotAfter
			}
		}
		if last.IsZero() {
			return last
		}
		if first.IsZero() || last.Before(first) {
			first = last
		}
	}
	return first
}

// IsChallenge reports whether a handshake is a challenge of TLS-ALPN-01: RFC 8737
// section 3 requires that it offers this protocol and no other.
func IsChallenge(hello *tls.ClientHelloInfo) bool {
	return len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == ALPN
}

// Wrap returns a handler that answers the challenges of HTTP-01, and passes
// other requests to h.
func (m *Manager) Wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// certmagic would search its folder for any host.
		if !m.has(hostname(r.Host)) || !m.issuer.HandleHTTPChallenge(w, r) {
			h.ServeHTTP(w, r)
		}
	})
}

// hostname returns a host without its port. Names have no colons.
func hostname(host string) string {
	name, _, _ := strings.Cut(host, ":")
	return name
}

// Close ends what runs in the background. The process must end then.
func (m *Manager) Close() {
	m.cancel()
	m.cache.Stop()
	// attempts have no time to; the next process would wait for them
	certmagic.CleanUpOwnLocks(context.Background(), zap.NewNop())
	if m.shared != nil {
		m.shared.client.Close()
	}
}
