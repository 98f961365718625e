package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/balance"
	"github.com/chert-http/chert/internal/reason"
)

// resolver is what is asked for names.
type resolver struct {
	addrs func(ctx context.Context, host string) ([]netip.Addr, error)
	srv   func(ctx context.Context, name string) ([]*net.SRV, error)
	// every is the time between two resolutions, 20 % more or less.
	every time.Duration
}

var systemResolver = resolver{
	addrs: func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	},
	srv: func(ctx context.Context, name string) ([]*net.SRV, error) {
		_, list, err := net.DefaultResolver.LookupSRV(ctx, "", "", name)
		return list, err
	},
	every: 10 * time.Second,
}

const (
	// resolveTimeout is for one name.
	resolveTimeout = 5 * time.Second
	// emptyAnswers is how many in sequence it takes to believe that a name has no address
	// left: the last addresses are more likely to work than none.
	emptyAnswers = 3
)

// target is a server as it was configured, or as an SRV record has it.
type target struct {
	Server
	host string // its host, for TLS; "" for a unix socket
	port string
	name bool // host must be resolved
}

// targetOf checks and splits the address of a server.
func targetOf(s Server) (target, error) {
	t := target{Server: s}
	if path, unix := strings.CutPrefix(s.Addr, "unix:"); unix {
		if path == "" {
			return t, errors.New("a unix socket needs a path")
		}
		return t, nil
	}
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return t, fmt.Errorf("%q is no address; want host:port or unix:/path", s.Addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return t, fmt.Errorf("%q has no port from 1 to 65535", s.Addr)
	}
	t.host, t.port = host, port
	if host == "" {
		return t, fmt.Errorf("%q has no host", s.Addr)
	}
	if _, err := netip.ParseAddr(host); err != nil {
		t.name = true
		if strings.ContainsAny(host, " \t\r\n/@?#[]%:") {
			return t, fmt.Errorf("%q has no valid host", s.Addr)
		}
	}
	return t, nil
}

// weight returns the weight for package balance.
func (t *target) weight() int {
	switch {
	case t.Weight == 0:
		return 1
	case t.Weight < 0:
		return 0
	}
	return min(t.Weight, balance.MaxWeight)
}

// answers are what names have resolved to last. They belong to the goroutine that resolves.
type answers struct {
	addrs map[string][]netip.Addr // by host
	empty map[string]int          // how many empty answers in sequence
	srv   []target
}

// resolves reports whether the Upstream has names.
func (u *Upstream) resolves() bool {
	return u.o.SRV != "" || slices.ContainsFunc(u.targets, func(t target) bool { return t.name })
}

// resolve keeps the servers of names up to date until the Upstream closes.
func (u *Upstream) resolve() {
	a := &answers{addrs: map[string][]netip.Addr{}, empty: map[string]int{}}
	last := ""
	for {
		code, err := u.answer(a)
		if u.ctx.Err() != nil {
			return
		}
		if text := errorText(err); text != last {
			u.logNames(err)
			last = text
		}
		u.resolved(a, code, err)
		every := u.pool.resolver.every
		every += every/5 - time.Duration(rand.Int64N(int64(every/5*2)+1))
		if err != nil && len(u.members()) == 0 {
			every = min(every, time.Second)
		}
		timer := time.NewTimer(every)
		select {
		case <-timer.C:
		case <-u.ctx.Done():
			timer.Stop()
			return
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// logNames writes one line when the resolution begins to fail, fails differently, or works
// again.
func (u *Upstream) logNames(err error) {
	l, name := u.pool.logger, slog.String("upstream", u.o.Name)
	if err == nil {
		l.Info("proxy: upstream "+u.o.Name+": all names are resolved again", name)
		return
	}
	l.Warn("proxy: upstream "+u.o.Name+": a name is not resolved, its last addresses stay: "+err.Error(), name)
}

// answer asks for all names. The error is the last one.
func (u *Upstream) answer(a *answers) (code reason.Code, err error) {
	targets := u.targets
	if u.o.SRV != "" {
		ctx, cancel := context.WithTimeout(u.ctx, resolveTimeout)
		list, e := u.pool.resolver.srv(ctx, u.o.SRV)
		cancel()
		if next := targetsOf(list); e == nil && a.accept("SRV "+u.o.SRV, len(next)) {
			a.srv = next
		} else if e != nil {
			code, err = dnsCode(e), e
		}
		targets = a.srv
	}
	asked := map[string]bool{}
	for _, t := range targets {
		if !t.name || asked[t.host] {
			continue
		}
		asked[t.host] = true
		ctx, cancel := context.WithTimeout(u.ctx, resolveTimeout)
		list, e := u.pool.resolver.addrs(ctx, t.host)
		cancel()
		var none *net.DNSError
		if errors.As(e, &none) && none.IsNotFound {
			list = nil // an answer, which says that there are no addresses
		} else if e != nil {
			code, err = dnsCode(e), e
			continue
		}
		if e != nil {
			code, err = dnsCode(e), e
		}
		for i := range list {
			list[i] = list[i].Unmap()
		}
		slices.SortFunc(list, netip.Addr.Compare)
		if list = slices.Compact(list); a.accept(t.host, len(list)) {
			a.addrs[t.host] = list
		}
	}
	return code, err
}

// accept reports whether an answer of n is believed.
func (a *answers) accept(name string, n int) bool {
	if n > 0 {
		a.empty[name] = 0
		return true
	}
	a.empty[name]++
	return a.empty[name] >= emptyAnswers
}

// targetsOf maps SRV records (RFC 2782) to servers: those of the lowest priority are used,
// and all others are backups.
func targetsOf(list []*net.SRV) []target {
	// A target of "." means that there is no such service.
	list = slices.DeleteFunc(slices.Clone(list), func(r *net.SRV) bool { return r.Target == "." })
	slices.SortFunc(list, func(a, b *net.SRV) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Target, b.Target),
			cmp.Compare(a.Port, b.Port))
	})
	var all []target
	for _, r := range list {
		host := strings.TrimSuffix(r.Target, ".")
		t, err := targetOf(Server{Addr: net.JoinHostPort(host, strconv.Itoa(int(r.Port))),
			Weight: max(int(r.Weight), 1), Backup: r.Priority > list[0].Priority})
		if err == nil {
			all = append(all, t)
		}
	}
	return all
}

func dnsCode(err error) reason.Code {
	var dns *net.DNSError
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &dns) && dns.IsTimeout {
		return reason.DNSTimeout
	}
	return reason.DNSFailed
}
