package proxy

import (
	"errors"
)

// Upstream is a list of servers that are alike. It is safe for concurrent use.
type Upstream struct {
	pool *Pool
	o    UpstreamOptions // immutable
}

// Name returns UpstreamOptions.Name.
func (u *Upstream) Name() string { return u.o.Name }

// Status returns the state of now.
func (u *Upstream) Status() UpstreamStatus { return UpstreamStatus{Name: u.o.Name} }

// Drain begins or ends the draining of a server, whose address is as it was configured or
// as a name has resolved: it gets no new requests, but those of sticky sessions that it
// has. It is an error if there is no such server.
func (u *Upstream) Drain(addr string, on bool) error { return nil }

// Close ends the resolution of names and the checks, and gives the servers back to the
// Pool. Requests under way go on, and new ones are answered 503.
func (u *Upstream) Close() error { return nil }

// Moved returns the share of all keys, from 0 to 1, that PolicyHash and PolicySticky send
// to another server under b than under a, while all servers are up.
func Moved(a, b *Upstream) float64 { return 0 }

func (o *UpstreamOptions) complete() error {
	if len(o.Servers) == 0 && o.SRV == "" {
		return errors.New("neither Servers nor SRV")
	}
	return o.Balance.check()
}
