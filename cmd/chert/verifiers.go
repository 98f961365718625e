package main

import (
	"log/slog"
	"sync"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/middleware/jwt"
)

// verifiers are those of tokens that are in use. A reload goes on with the keys that have been
// fetched: the server that publishes them may be away.
type verifiers struct {
	errs *slog.Logger
	mu   sync.Mutex
	all  map[string]*verifier // by config.JWT.ID
}

type verifier struct {
	*jwt.Verifier
	users int // guarded by verifiers.mu
}

// use returns the verifier for c, until release is called. The first to use it waits for its
// keys, for at most 10 s.
func (v *verifiers) use(c *config.JWT) (one *jwt.Verifier, release func(), err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	known := v.all[c.ID]
	if known == nil {
		o := c.Options
		o.Logger = v.errs
		made, err := jwt.New(&o)
		if err != nil {
			return nil, nil, err
		}
		known = &verifier{Verifier: made}
		if v.all == nil {
			v.all = make(map[string]*verifier)
		}
		v.all[c.ID] = known
	}
	known.users++
	return known.Verifier, sync.OnceFunc(func() { v.leave(c.ID) }), nil
}

func (v *verifiers) leave(id string) {
	v.mu.Lock()
	one := v.all[id]
	if one.users--; one.users == 0 {
		delete(v.all, id)
	} else {
		one = nil
	}
	v.mu.Unlock()
	if one != nil {
		one.Close()
	}
}
