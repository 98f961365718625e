package attack

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// An attack is what some clients do to a server.
type attack struct {
	name, about string
	// attackers do it at the same time, unless the flag says otherwise.
	attackers int
	// front is where the innocent clients are: where the attack is.
	front front
	// heap is the documented bound of what the attack holds on chert's heap, in MB; 0 where docs/limits.md has none
	// beyond those of connections.
	heap float64
	// chertOnly: net/http, and quic-go's http3.Server, have no such feature.
	chertOnly bool
	// run is one attacker. It returns when ctx has ended or it can do no more, and is then called again.
	run func(ctx context.Context, a *attacker) error
}

// front is an address of the target.
type front int

const (
	plain front = iota
	withECDSA
	withRSA
	withH3 // HTTP/3, where quic-go's server takes the place of net/http's
	fronts
)

// attacker is one of the clients.
type attacker struct {
	number int
	addr   [fronts]string
	// sent counts what the attack is about: frames, blocks, connections; good what went well for a client that was no
	// attack, where that is the question.
	sent, good *atomic.Int64
}

// attacks are all of them, by family; see flood.go, hold.go, shake.go and h3.go.
var attacks = slices.Concat(floods, holders, shakers, overQUIC)

// again calls run until ctx has ended, not more often than a flood of connections would be seen as.
func (a *attack) again(ctx context.Context, me *attacker) {
	for ctx.Err() == nil {
		a.run(ctx, me)
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
}
