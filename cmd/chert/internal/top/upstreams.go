package top

import (
	"fmt"
	"time"

	"github.com/chert-http/chert/internal/interval"
	"github.com/chert-http/chert/proxy"
)

// upstreams returns the upstreams, each with its servers. Rates are those since before.
func upstreams(now, before *Upstreams) (lines []line) {
	const columns = "%-28s %7s %8s %8s %9s %5s %6s %s"
	lines = append(lines, line{fmt.Sprintf(columns, "UPSTREAM, SERVER", "PER S", "FAILURES", "LATENCY", "IN FLIGHT",
		"KEPT", "REUSE", "STATE"), head})
	if len(now.Upstreams) == 0 {
		return append(append(lines, line{"nothing is forwarded", dim}), stores(now, before)...)
	}
	for i := range now.Upstreams {
		u := &now.Upstreams[i]
		text, style := u.Name+": "+u.Balance, bold
		if u.MaxQueue > 0 {
			text += fmt.Sprintf("; %d of at most %d wait", u.Queue, u.MaxQueue)
		}
		if r := &u.Retries; r.Retries+r.Refused > 0 {
			text += fmt.Sprintf("; %d retries of at most %d in 10 s, %d not permitted so far", r.Retries, r.Limit,
				r.Refused)
		}
		if u.Resolve != "" {
			text, style = text+"; "+u.Resolve, warn
		}
		if u.Panic {
			text, style = text+"; too few servers are up, so ejections are ignored", warn
		}
		lines = append(lines, line{Clean(text), style})
		for j := range u.Servers {
			s := &u.Servers[j]
			old := find(before, u.Name, s.Addr)
			rate, reuse := "-", "-"
			if seconds := now.At.Sub(before.At).Seconds(); old != nil && seconds > 0 && s.Requests >= old.Requests {
				rate = interval.Number(float64(s.Requests-old.Requests) / seconds)
			}
			if s.Requests > 0 {
				reuse = percent(float64(s.Reused) / float64(s.Requests))
			}
			inFlight := fmt.Sprint(s.InFlight)
			if s.MaxRequests > 0 {
				inFlight += fmt.Sprintf("/%d", s.MaxRequests)
			}
			state, style := stateOf(s, now.At)
			lines = append(lines, line{fmt.Sprintf(columns, "  "+Clean(s.Addr), rate,
				interval.Number(float64(s.Failures)), duration(s.Latency), inFlight, fmt.Sprint(s.Idle), reuse,
				Clean(state)), style})
		}
	}
	return append(lines, stores(now, before)...)
}

// stores returns the stores, if there are any. Rates are those since before.
func stores(now, before *Upstreams) (lines []line) {
	if len(now.Stores) == 0 {
		return nil
	}
	const columns = "%-28s %7s %8s %8s %8s %6s %6s %6s %s"
	lines = append(lines, line{fmt.Sprintf(columns, "STORE", "READ/S", "STORED/S", "STREAMS", "WAITING", "FAILED",
		"CUTS", "GAPS", "STATE"), head})
	for i := range now.Stores {
		s := &now.Stores[i]
		read, stored := "-", "-"
		for j := range before.Stores {
			old := &before.Stores[j]
			seconds := now.At.Sub(before.At).Seconds()
			if old.Name == s.Name && seconds > 0 && s.Read >= old.Read && s.Published >= old.Published {
				read = interval.Number(float64(s.Read-old.Read) / seconds)
				stored = interval.Number(float64(s.Published-old.Published) / seconds)
			}
		}
		count := func(n uint64) string { return interval.Number(float64(n)) }
		state, style := "connected", normal
		if s.Away {
			state, style = "away", warn
		}
		lines = append(lines, line{fmt.Sprintf(columns, "  "+Clean(s.Name), read, stored, count(uint64(s.Streams)),
			count(uint64(s.Waiting)), count(s.Failed), count(s.Cuts), count(s.Gaps), state), style})
	}
	return lines
}

// find returns a server of an upstream, nil if there is none.
func find(in *Upstreams, upstream, addr string) *proxy.ServerStatus {
	for i := range in.Upstreams {
		if in.Upstreams[i].Name != upstream {
			continue
		}
		for j := range in.Upstreams[i].Servers {
			if s := &in.Upstreams[i].Servers[j]; s.Addr == addr {
				return s
			}
		}
	}
	return nil
}

// stateOf says whether a server gets requests, and why not.
func stateOf(s *proxy.ServerStatus, at time.Time) (text string, style style) {
	text = s.State
	if s.Draining {
		text = "draining"
	}
	if s.Check != "unchecked" {
		text += ", checks " + s.Check
	}
	if s.Backup {
		text += ", backup"
	}
	if s.State == "ejected" || s.Check == "failing" {
		style = warn
		if s.Cause != "" {
			text += ": " + s.Cause
		}
	}
	if !s.Until.IsZero() {
		text += fmt.Sprintf(", for %v", max(s.Until.Sub(at), 0).Round(time.Second))
	}
	return text, style
}
