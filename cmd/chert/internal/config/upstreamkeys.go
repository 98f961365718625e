package config

import (
	"cmp"
	"strings"
	"time"

	"github.com/chert-http/chert/proxy"
)

func (l *loader) balance(t *table, to *proxy.Balance) {
	if s, at, ok := t.str("balance"); ok {
		b, err := proxy.ParseBalance(s)
		if err != nil {
			l.errorf(at, "balance: %s", strings.TrimPrefix(err.Error(), "proxy: ParseBalance: "))
		}
		*to = b
	}
	v, spot := t.get("bound")
	var bound float64
	switch v := v.(type) {
	case nil:
		return
	case int64:
		bound = float64(v)
	case float64:
		bound = v
	default:
		t.wrongType("bound", spot.value, "a number", v)
		return
	}
	switch {
	case to.Policy != proxy.PolicyHash && to.Policy != proxy.PolicySticky:
		l.errorf(spot.key, `bound is for balance = "hash ..." and "sticky"`)
	case bound == 0:
		to.Bound = -1
	case !(bound > 1 && bound <= 10):
		l.errorf(spot.value, "bound wants a number of more than 1 and at most 10, such as 1.5, or 0 for none")
	default:
		to.Bound = bound
	}
}

// check reads a path, or a table.
func (l *loader) check(t *table) *proxy.Check {
	if _, ok := t.m["check"].(map[string]any); !ok {
		s, at, ok := t.str("check")
		if !ok {
			return nil
		}
		l.checkPath(s, at)
		return &proxy.Check{Path: s}
	}
	c, t := &proxy.Check{}, t.table("check")
	s, at, ok := t.str("path")
	if c.Path = s; ok {
		l.checkPath(s, at)
	} else if t.m["path"] == nil {
		l.errorf(t.spot.key, `%s has no path; want path = "/healthz"`, t.name)
	}
	if s, at, ok := t.str("proxy_host"); ok {
		if c.Host = s; !isHost(s) {
			l.errorf(at, "proxy_host: %q is no host", s)
		}
	}
	for key, to := range map[string]*time.Duration{"interval": &c.Interval, "timeout": &c.Timeout} {
		if d, ok := t.duration(key); ok {
			if *to = d; d < 10*time.Millisecond {
				l.errorf(t.spot.child(key).value, "%s wants 10ms at least", key)
			}
		}
	}
	for key, to := range map[string]*int{"fall": &c.Fall, "rise": &c.Rise} {
		if n := t.count(key, 1, 100); n != nil {
			*to = *n
		}
	}
	if n := t.count("status", 200, 599); n != nil {
		c.Status = *n
	}
	t.done()
	return c
}

func (l *loader) checkPath(s string, at Position) {
	if !strings.HasPrefix(s, "/") || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		l.errorf(at, `check wants a path such as "/healthz", without spaces`)
	}
}

// isHost reports whether s can be a Host field.
func isHost(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/?#@"'<>\`, r)
	})
}

// health reads a table; false instead of one is none.
func (l *loader) health(t *table, h *proxy.Health) {
	if v, ok := t.m["health"].(bool); ok {
		t.get("health")
		if h.Off = !v; v {
			l.errorf(t.spot.child("health").value, "health wants a table, or false")
		}
		return
	}
	if v, ok := t.m["health"].(string); ok && strings.HasPrefix(v, "/") {
		t.get("health")
		l.errorf(t.spot.child("health").value, "health wants a table, or false; want check = %q to ask servers for it",
			v)
		return
	}
	if t = t.table("health"); t == nil {
		return
	}
	for _, k := range []struct {
		key  string
		to   *int
		most int64
	}{{"consecutive", &h.Consecutive, 16}, {"percent", &h.Percent, 100}} {
		if n := t.count(k.key, 0, k.most); n != nil {
			*k.to = orNone(*n)
		}
	}
	if n := t.count("least", 1, 1<<20); n != nil {
		h.Least = *n
	}
	for _, k := range []struct {
		key string
		to  *time.Duration
	}{{"within", &h.Within}, {"ejection", &h.Ejection}, {"max_ejection", &h.MaxEjection}} {
		if d, ok := t.duration(k.key); ok {
			if *k.to = d; d == 0 {
				l.errorf(t.spot.child(k.key).value, "%s wants more than 0", k.key)
			}
		}
	}
	if first := cmp.Or(h.Ejection, 5*time.Second); h.MaxEjection > 0 && h.MaxEjection < first {
		l.errorf(t.spot.child("max_ejection").value, "max_ejection wants ejection at least, which is %v", first)
	}
	t.done()
}

// retry reads what may be sent twice: a list, or false for nothing.
func (l *loader) retry(t *table, r *proxy.Retry) {
	if v, ok := t.m["retry"].(bool); ok {
		t.get("retry")
		if r.Off = !v; v {
			l.errorf(t.spot.child("retry").value, `retry wants false, or a list of "timeouts", "statuses" and "keys"`)
		}
		return
	}
	all, _ := t.list("retry")
	for _, it := range all {
		switch it.text {
		case "timeouts":
			r.Timeouts = true
		case "statuses":
			r.Statuses = true
		case "keys":
			r.Keys = true
		default:
			l.errorf(it.at, `retry wants "timeouts", "statuses" and "keys", not %q`, it.text)
		}
	}
}
