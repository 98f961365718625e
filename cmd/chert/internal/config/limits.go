package config

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/vhost"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/ratelimit"
)

// Limits are the limits of the requests of a site or route. The zero value is none. Routes
// that have a site's limit have its pointer, and share what is counted.
type Limits struct {
	Rate       *SiteRate
	Concurrent *Concurrent
	Body       int64 // the largest body of a request, in bytes; 0: no limit
	Bandwidth  Bandwidth
	// BodyTime is how long the body of a request may take, and ResponseTime how long a
	// response; 0: no limit.
	BodyTime, ResponseTime time.Duration
}

// Bandwidth limits how fast a response is sent.
type Bandwidth struct {
	Rate  int64 // bytes a second; 0: no limit
	After int64 // how many bytes have no limit
}

// SiteRate limits the request rate of each client for a site or a route.
type SiteRate struct {
	// Name distinguishes its counters from those of other sites and routes. It is the same
	// after a reload and in other processes with that site or route.
	Name  string
	Rates []ratelimit.Rate // at least one; all must admit
}

// Concurrent limits how many requests of one client there are at the same time.
type Concurrent struct{ Max int }

// LeastBandwidth is the smallest value of Bandwidth.Rate.
const LeastBandwidth = 1000

// MaxConcurrent is the largest value of Concurrent.Max.
const MaxConcurrent = 1 << 20

// limits reads [site.limits] and the like. Each key that t does not have is as in base.
func (l *loader) limits(t *table, base Limits) Limits {
	o := base
	t = t.table("limits")
	if t == nil {
		return o
	}
	if all, ok := t.list("rate"); ok {
		o.Rate = nil // also of an empty list
		var rates []ratelimit.Rate
		for _, it := range all {
			rate, err := ratelimit.ParseRate(it.text)
			if err != nil {
				l.errorf(it.at, "rate: %v", err)
				continue
			}
			rates = append(rates, rate)
		}
		if len(rates) > 0 {
			o.Rate = &SiteRate{Rates: rates}
		}
	}
	if n, _, ok := t.size("body"); ok {
		o.Body = n
	}
	if n := t.count("concurrent", 0, MaxConcurrent); n != nil {
		if o.Concurrent = nil; *n > 0 {
			o.Concurrent = &Concurrent{*n}
		}
	}
	l.bandwidth(t, &o.Bandwidth)
	l.requestTimes(t, &o)
	t.done()
	return o
}

// bandwidth reads the keys that t has.
func (l *loader) bandwidth(t *table, o *Bandwidth) {
	if n, at, ok := t.size("bandwidth"); ok {
		if o.Rate = n; n > 0 && n < LeastBandwidth {
			l.errorf(at, "bandwidth is in bytes a second, and wants 1kB at least, or 0 for no limit")
		}
	}
	if n, at, ok := t.size("bandwidth_after"); ok {
		if o.After = n; o.Rate == 0 && n > 0 {
			l.errorf(at, "bandwidth_after is for a bandwidth, and there is none")
		}
	}
}

// requestTimes reads the times of requests that t has.
func (l *loader) requestTimes(t *table, o *Limits) {
	for _, k := range []struct {
		key string
		to  *time.Duration
	}{{"body_timeout", &o.BodyTime}, {"response_timeout", &o.ResponseTime}} {
		if d, ok := t.duration(k.key); ok {
			if *k.to = d; d > 0 && d < LeastTimeout {
				l.errorf(t.spot.child(k.key).value, `%s wants %v at least, or "0s" for no limit`, k.key, LeastTimeout)
			}
		}
	}
}

// own gives a site counters of its own, where it has the limits of [defaults].
func (o Limits) own(hosts []vhost.Pattern) Limits {
	if o.Rate != nil {
		o.Rate = &SiteRate{counterName(hosts, "", nil, nil), o.Rate.Rates}
	}
	if o.Concurrent != nil {
		o.Concurrent = &Concurrent{o.Concurrent.Max}
	}
	return o
}

// counterName returns the name of the counters of a site, or of its route. It does not depend
// on the order of lists in the file. It is a hash, since names of counters are short, of few
// characters, and seen by clients.
func counterName(hosts []vhost.Pattern, path string, methods []string, when *middleware.Condition) string {
	var names []string
	for _, h := range hosts {
		names = append(names, string(h))
	}
	slices.Sort(names)
	text := strings.Join(names, ",") + "\x00" + path + "\x00" + strings.Join(slices.Sorted(slices.Values(methods)), ",")
	if when != nil {
		text += "\x00" + canonical(when)
	}
	sum := sha256.Sum256([]byte(text))
	kind := "site-"
	if path != "" {
		kind = "route-"
	}
	return kind + hex.EncodeToString(sum[:8])
}

// siteRates reports whether a site or a route has a limit of its rate.
func (cfg *Config) siteRates() bool {
	return slices.ContainsFunc(cfg.Sites, func(s Site) bool {
		return s.Limits.Rate != nil ||
			slices.ContainsFunc(s.Routes, func(r Route) bool { return r.Limits.Rate != nil })
	})
}

// HasRates reports whether the request rate is limited, of all sites or of some.
func (cfg *Config) HasRates() bool { return len(cfg.RateLimit.Rates) > 0 || cfg.siteRates() }

// Timeouts are those of connections, as the fields of chert.Server. 0 is the default.
type Timeouts struct {
	Head time.Duration // ReadHeaderTimeout
	Idle time.Duration // IdleTimeout
}

// timeouts reads the times of the top of the file. A connection has them before its site is
// known.
func (l *loader) timeouts(t *table) (o Timeouts) {
	for _, k := range []struct {
		key string
		to  *time.Duration
	}{{"head_timeout", &o.Head}, {"idle_timeout", &o.Idle}} {
		if d, ok := t.duration(k.key); ok {
			if *k.to = d; d < LeastTimeout {
				l.errorf(t.spot.child(k.key).value, "%s wants %v at least", k.key, LeastTimeout)
			}
		}
	}
	return o
}

// LeastTimeout is the smallest value of Timeouts, and of times of requests.
const LeastTimeout = time.Second
