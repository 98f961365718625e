package interval

import (
	"cmp"
	"slices"
	"time"

	"github.com/chert-http/chert/stats"
)

func (b *between) routes(r *Report) {
	before := make(map[string]*stats.Route, len(b.before.Routes))
	for i := range b.before.Routes {
		before[b.before.Routes[i].Pattern] = &b.before.Routes[i]
	}
	r.Routes = []Route{}
	var all time.Duration // in handlers
	spent := make(map[string]time.Duration)
	for i := range b.now.Routes {
		now := &b.now.Routes[i]
		o := before[now.Pattern]
		if o == nil {
			o = new(stats.Route)
		}
		n := since(o.N(), now.N())
		handler := grown(&o.Handler, &now.Handler)
		handovers := since(o.Handovers, now.Handovers)
		if n == 0 && handler.Sum == 0 && handovers == 0 {
			continue
		}
		one := Route{
			Pattern: Printable(now.Pattern), Latency: b.latency(&o.Duration, &now.Duration),
			Handler:   handler.Quantile(0.99),
			Errors:    b.rate(o.Classes[5]+o.Classes[0], now.Classes[5]+now.Classes[0]),
			Client:    b.rate(o.Classes[4], now.Classes[4]),
			Handovers: float64(handovers), Demotions: now.Demotions, Ways: []Rate{},
		}
		one.Rate = float64(n) / b.seconds // the histogram's is estimated
		for w := range now.Ways {
			if m := since(o.Ways[w], now.Ways[w]); m > 0 && n > 0 {
				one.Ways = append(one.Ways, Rate{stats.Way(w).String(), float64(m) / float64(n)})
			}
		}
		all += handler.Sum
		spent[one.Pattern] = handler.Sum
		r.Routes = append(r.Routes, one)
	}
	for i := range r.Routes {
		if all > 0 {
			r.Routes[i].Share = float64(spent[r.Routes[i].Pattern]) / float64(all)
		}
	}
	slices.SortFunc(r.Routes, func(x, y Route) int {
		return cmp.Or(cmp.Compare(y.Share, x.Share), cmp.Compare(y.P99, x.P99), cmp.Compare(x.Pattern, y.Pattern))
	})
	r.Routes = fewer(r.Routes)
}

// fewer cuts routes, which are sorted by time: half of those that stay are the first, up to a quarter have failed most,
// and the others are the slowest.
func fewer(all []Route) []Route {
	if len(all) <= MaxRoutes {
		return all
	}
	rest := all[MaxRoutes/2:]
	slices.SortStableFunc(rest, func(x, y Route) int { return cmp.Compare(y.Errors, x.Errors) })
	for i := 0; i < MaxRoutes/4 && rest[0].Errors > 0; i++ {
		rest = rest[1:]
	}
	slices.SortStableFunc(rest,
		func(x, y Route) int { return cmp.Or(cmp.Compare(y.P99, x.P99), cmp.Compare(y.Mean, x.Mean)) })
	return all[:MaxRoutes]
}
