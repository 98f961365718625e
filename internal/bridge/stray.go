package bridge

import (
	"sync"

	"github.com/chert-http/chert/stats"
)

// strays are requests of direct handlers that have lost their loop. Their sessions keep
// nothing about them that another goroutine could read, since nearly none is lost. Safe
// for concurrent use.
type strays struct {
	mu sync.Mutex
	of map[any]stray
}

type stray struct {
	r     stats.Request
	since int64
}

// Strayed shows r, which has come at since, as that of a session until Found is called.
func (cfg *Config) Strayed(session any, r stats.Request, since int64) {
	s := &cfg.strays
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[any]stray)
	}
	s.of[session] = stray{r, since}
}

// Found ends what Strayed began.
func (cfg *Config) Found(session any) {
	s := &cfg.strays
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, session)
}

// Stray calls f with the request of a session that is a stray, as conn.Inspected.Running
// does.
func (cfg *Config) Stray(session any, before int64, f func(stats.Request, int64)) {
	s := &cfg.strays
	s.mu.Lock()
	one, ok := s.of[session]
	s.mu.Unlock()
	if ok && one.since < before {
		f(one.r, one.since)
	}
}
