package main

import (
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/derive"
)

// rotate makes the keys of a site's session tickets those of now, if they are derived from a
// secret: a session is then resumed by every instance that has it. Without one crypto/tls makes
// up keys, which no other process has. Several goroutines may rotate at the same time.
func (s *tlsSites) rotate(site *tlsSite, state *tlsState) {
	if s.secret == "" {
		return
	}
	period := derive.PeriodOf(time.Now())
	if state.period.Load() == period {
		return
	}
	scope := site.scope
	if state.clients != nil {
		scope += " " + state.clients.Sum() // other authorities: clients are verified again
	}
	keys := s.secret.TicketKeys(scope, period)
	state.cfg.SetSessionTicketKeys(keys)
	state.http1.SetSessionTicketKeys(keys)
	state.period.Store(period)
}
