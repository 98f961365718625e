package jwt

import (
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/MicahParks/jwkset"
)

const (
	// maxKeys bounds the keys of a set, and maxTries how many of them are tried
	// with one token: it may name no key, and verifying takes up to 1 ms.
	maxKeys  = 64
	maxTries = 8
)

// published has the keys of one response of the endpoint. It is immutable, and
// the same pointer stands for the same keys.
type published struct{ keys []publishedKey }

type publishedKey struct {
	id  string // "kid"
	alg string // the intended algorithm (RFC 7517 section 4.4), or ""
	key crypto.PublicKey
}

var errNoKeys = errors.New("the set has no key that can verify signatures")

// parseSet returns the keys that can verify signatures. RFC 7517 section 5:
// keys that are not understood, lack a member or are out of range should be
// ignored; they must not prevent the use of the others.
func parseSet(body []byte) (set *published, skipped []error, err error) {
	var doc struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, nil, err
	}
	set = new(published)
	for i, raw := range doc.Keys {
		if len(set.keys) == maxKeys {
			skipped = append(skipped, fmt.Errorf("there are more than %d keys", maxKeys))
			break
		}
		k, err := parseKey(raw)
		if err != nil {
			skipped = append(skipped, fmt.Errorf("key %d: %w", i, err))
			continue
		}
		set.keys = append(set.keys, k)
	}
	if len(set.keys) == 0 {
		return nil, nil, errors.Join(append([]error{errNoKeys}, skipped...)...)
	}
	return set, skipped, nil
}

func parseKey(raw json.RawMessage) (k publishedKey, err error) {
	var m jwkset.JWKMarshal
	if err := json.Unmarshal(raw, &m); err != nil {
		return k, err
	}
	// RFC 7517 sections 4.2 and 4.3: the intended use of the key.
	if m.USE != "" && m.USE != jwkset.UseSig {
		return k, fmt.Errorf("%q is for %q", m.KID, m.USE)
	}
	if m.KEYOPS != nil && !slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify) {
		return k, fmt.Errorf("%q is not for verifying", m.KID)
	}
	// Certificates are ignored: the set is trusted because of its origin.
	// Without Private a secret is an error, and of a private key the public
	// part is used.
	m.X5C, m.X5T, m.X5TS256, m.X5U = nil, "", "", ""
	j, err := jwkset.NewJWKFromMarshal(m, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{SkipKeyOps: true})
	if err != nil {
		return k, err
	}
	k = publishedKey{id: m.KID, alg: m.ALG.String(), key: j.Key()}
	for _, a := range asymmetric {
		if k.alg == "" || k.alg == a {
			if err = suits(k.key, a); err == nil {
				return k, nil
			}
		}
	}
	if err == nil {
		err = fmt.Errorf("%q is for %q", k.id, k.alg)
	}
	return k, err
}

// choose returns the keys that a token may be signed with. known reports
// whether a key has that name, for this algorithm or not.
func (p *published) choose(alg, kid string, named bool) (keys []crypto.PublicKey, known bool) {
	for _, k := range p.keys {
		if named && k.id != kid {
			continue
		}
		known = true
		if (k.alg == "" || k.alg == alg) && suits(k.key, alg) == nil && len(keys) < maxTries {
			keys = append(keys, k.key)
		}
	}
	return keys, known
}

func (p *published) equal(q *published) bool {
	return slices.EqualFunc(p.keys, q.keys, func(a, b publishedKey) bool {
		key, ok := a.key.(interface{ Equal(crypto.PublicKey) bool })
		return ok && a.id == b.id && a.alg == b.alg && key.Equal(b.key)
	})
}
