package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/proxy"
)

// lookupTime is how long a check waits for all names of upstream servers together.
const lookupTime = 3 * time.Second

// unresolved tells which names of upstream servers have no address now. They may get one later, so
// that is no mistake.
func unresolved(cfg *config.Config) []string {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	var mu sync.Mutex
	var all []string
	var wait sync.WaitGroup
	ask := func(upstream, name string, lookup func(ctx context.Context, name string) error) {
		wait.Go(func() {
			err := lookup(ctx, name)
			if err == nil {
				return
			}
			text := err.Error()
			var dns *net.DNSError
			switch {
			case errors.As(err, &dns) && dns.IsNotFound:
				text = "there is no such name"
			case errors.Is(err, context.DeadlineExceeded), errors.As(err, &dns) && dns.IsTimeout:
				text = fmt.Sprintf("no answer within %v", lookupTime)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, fmt.Sprintf("upstream %s: %s cannot be resolved: %s", upstream, quote(name), text))
		})
	}
	seen := make(map[string]bool)
	for _, c := range cfg.Upstreams {
		o := &c.Options
		if o.SRV != "" {
			ask(o.Name, o.SRV, func(ctx context.Context, name string) error {
				_, _, err := net.DefaultResolver.LookupSRV(ctx, "", "", name)
				return err
			})
		}
		for _, s := range o.Servers {
			host, _, err := net.SplitHostPort(s.Addr)
			_, isAddr := netip.ParseAddr(host)
			if strings.HasPrefix(s.Addr, "unix:") || err != nil || isAddr == nil || seen[host] {
				continue
			}
			seen[host] = true
			ask(o.Name, host, func(ctx context.Context, name string) error {
				_, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
				return err
			})
		}
	}
	wait.Wait()
	slices.Sort(all)
	return all
}

// compare prints what moves from the servers of an older file to those of now.
func compare(pool *upstreamPool, now *upstreams, file string, stdout, stderr io.Writer) error {
	cfg, err := config.Load(file, configChecks)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return failure{errSaid}
	}
	before, _, err := pool.open(unchecked(cfg), config.Proxies{})
	if err != nil {
		return failure{fmt.Errorf("%s: %w", file, err)}
	}
	before.settle(lookupTime)
	now.settle(lookupTime)
	all := moves(before, now)
	for _, text := range all {
		fmt.Fprintln(stdout, text)
	}
	if len(all) == 0 {
		fmt.Fprintln(stdout, "no keys move to another server")
	}
	return nil
}

// settle waits until names have resolved, or for some time.
func (u *upstreams) settle(most time.Duration) {
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if !slices.ContainsFunc(u.status(), func(s proxy.UpstreamStatus) bool {
			return len(s.Servers) == 0 && s.Resolve == ""
		}) {
			return
		}
	}
}
