package jwt

import (
	"context"
	"crypto"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"golang.org/x/time/rate"
)

const (
	// maxSet bounds a JWKS document, in bytes, and maxKeys its keys: a token
	// without a key's name is tried with each.
	maxSet  = 1 << 20
	maxKeys = 64
	// patience is how long a request waits for a refresh that its token caused.
	patience = 5 * time.Second
)

// keySet is the JWKS and what is remembered of it. jwkset, which keyfunc is
// made of, fetches, refreshes and parses; what it fetches is stored only if it
// makes a usable set, so the last good keys stay whatever the endpoint answers.
// keyfunc itself is not used: of a token without "kid" it tries all keys whatever
// they are for, and it cannot say that it would have to wait.
type keySet struct {
	*jwkset.MemoryJWKSet
	remote jwkset.Storage // KeyRead of what is not there fetches the set, if that was not done lately
	loaded atomic.Bool
}

var errNoKeys = errors.New("the set has no key that signatures can be verified with")

// newKeySet fetches the set. That this fails is logged and no error: the
// endpoint may come up later than we do.
func newKeySet(ctx context.Context, o *Options) (*keySet, error) {
	s := &keySet{MemoryJWKSet: jwkset.NewMemoryStorage()}
	client := *o.Client
	client.Transport = bounded{client.Transport}
	store, err := jwkset.NewStorageFromHTTP(o.JWKS, jwkset.HTTPClientStorageOptions{
		Client: &client, Ctx: ctx, HTTPTimeout: 10 * time.Second, NoErrorReturnFirstHTTPReq: true,
		RefreshErrorHandler: func(ctx context.Context, err error) {
			o.Logger.ErrorContext(ctx, "JWKS cannot be refreshed; the last keys are used", "url", o.JWKS, "error", err)
		},
		RefreshInterval: o.Refresh, Storage: s,
	})
	if err != nil {
		return nil, err
	}
	s.remote, err = jwkset.NewHTTPClient(jwkset.HTTPClientOptions{
		HTTPURLs:          map[string]jwkset.Storage{o.JWKS: store},
		RateLimitWaitMax:  patience,
		RefreshUnknownKID: rate.NewLimiter(rate.Every(o.RefreshUnknown), 1),
	})
	return s, err
}

// KeyReplaceAll implements jwkset.Storage: it is how a refresh ends.
func (s *keySet) KeyReplaceAll(ctx context.Context, keys []jwkset.JWK) error {
	usable := make([]jwkset.JWK, 0, min(len(keys), maxKeys))
	for _, k := range keys {
		if m := k.Marshal(); m.USE != "" && m.USE != jwkset.UseSig {
			continue
		}
		// Secrets are left out too: what is published is none.
		if suitsAny(public(k.Key())) && len(usable) < maxKeys {
			usable = append(usable, k)
		}
	}
	if len(usable) == 0 {
		return errNoKeys
	}
	s.loaded.Store(true)
	return s.MemoryJWKSet.KeyReplaceAll(ctx, usable)
}

func suitsAny(key any) bool {
	for _, a := range asymmetric {
		if suits(key, a) == nil {
			return true
		}
	}
	return false
}

// public is the key to verify with, also if a set was published with private
// ones.
func public(key any) any {
	if p, ok := key.(interface{ Public() crypto.PublicKey }); ok {
		return p.Public()
	}
	return key
}

// bounded cuts answers off at maxSet.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	next := b.next
	if next == nil {
		next = http.DefaultTransport
	}
	res, err := next.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxSet), res.Body}
	}
	return res, err
}
