package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A side is one of those that are compared: instances with their clients.
type side struct {
	p       *plan
	name    string
	store   store // nil in memory
	servers servers
	clients *clientGroup
	rounds  []round
}

// A round is what a side has done in its turn.
type round struct {
	from, to        time.Time
	idle            time.Duration // the processor's time for a request that publishes to a topic without clients
	requests        int
	used, storeUsed time.Duration
	commands        int
	each, all       float64 // nanoseconds for a delivery, without what publishing takes and with it
}

// settle is how long after the last event of a turn its deliveries may still come.
const settle = 500 * time.Millisecond

// compare has all sides deliver in turns, and prints the cost of each and the ratio to the first, which
// has its topics in memory. also is another build of this command, which is one more side, or "".
func (p *plan) compare(rounds int, also string) error {
	sides := []*side{{p: p.inMemory(), name: "memory"}, {p: p, name: p.store}}
	if also != "" {
		other := p.copy()
		other.dir, other.self = filepath.Join(p.dir, "also"), also
		if err := os.Mkdir(other.dir, 0o700); err != nil {
			return err
		}
		sides = append(sides, &side{p: other, name: p.store + " by " + filepath.Base(also)})
	}
	for i, s := range sides {
		url := ""
		var err error
		if i > 0 {
			if s.store, err = startStore(s.p); err != nil {
				return err
			}
			defer s.store.kill()
			url = s.store.url()
		}
		if s.servers, err = s.p.startServers(url); err != nil {
			return err
		}
		defer s.servers.kill()
		if s.clients, err = s.p.startClients(fmt.Sprint("side", i, "-")); err != nil {
			return err
		}
		defer s.clients.kill()
		s.p.publishFor(3 * time.Second)
	}
	for range rounds {
		for _, s := range sides {
			s.turn()
		}
		if err := p.ctx.Err(); err != nil {
			return err
		}
	}
	fmt.Fprintln(p.out, "| | deliveries | CPU to publish | CPU for a delivery, besides (quartiles) | p50 | p99 | "+
		"commands that read, for an event and instance | CPU of the store for an event |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, s := range sides {
		all, err := s.clients.end()
		if err != nil {
			return err
		}
		if err := s.print(p.out, all); err != nil {
			return err
		}
	}
	fmt.Fprintln(p.out)
	for _, s := range sides[1:] {
		s.ratio(p.out, sides[0], "delivering", func(r *round) float64 { return r.each })
		s.ratio(p.out, sides[0], "delivering and publishing", func(r *round) float64 { return r.all })
	}
	return nil
}

// ratio prints how a value of the rounds compares with that of another side.
func (s *side) ratio(w io.Writer, to *side, what string, value func(*round) float64) {
	var all []float64
	for i := range s.rounds {
		all = append(all, value(&s.rounds[i])/value(&to.rounds[i]))
	}
	slices.Sort(all)
	n := len(all)
	fmt.Fprintf(w, "%s to %s, %s: median %.2f, quartiles %.2f-%.2f, of %d rounds\n", s.name, to.name, what,
		all[n/2], all[n/4], all[3*n/4], n)
}

// turn publishes to topics without clients, and then to those that have some.
func (s *side) turn() {
	p, st := s.p, s.store
	r := round{}
	p.nobody = p.topics
	before := s.servers.exact()
	if n := p.publishFor(p.quiet); n > 0 {
		time.Sleep(settle)
		r.idle = (s.servers.exact() - before) / time.Duration(n)
	}
	p.nobody = 0
	r.from, r.used = time.Now(), s.servers.exact()
	if st != nil {
		r.storeUsed, r.commands = st.cpu(), st.reads()
	}
	r.requests = p.publishFor(p.quiet)
	time.Sleep(settle)
	if st != nil {
		r.storeUsed, r.commands = st.cpu()-r.storeUsed, st.reads()-r.commands
	}
	r.used, r.to = s.servers.exact()-r.used, time.Now()
	s.rounds = append(s.rounds, r)
}

// print prints a row for all rounds, and finds what each delivery has cost.
func (s *side) print(w io.Writer, all *results) error {
	var each, idle []time.Duration
	var latency []uint32
	commands, requests, storeUsed := 0, 0, time.Duration(0)
	for i := range s.rounds {
		r := &s.rounds[i]
		before := len(latency)
		for _, records := range all.clients {
			for _, one := range records {
				if one.Kind == kindEvent && one.At >= r.from.UnixNano() && one.At < r.to.UnixNano() {
					latency = append(latency, one.Latency)
				}
			}
		}
		n := len(latency) - before
		if n == 0 || r.requests == 0 {
			return fmt.Errorf("%s: nothing was delivered in a round", s.name)
		}
		cost := (r.used - time.Duration(r.requests)*r.idle) / time.Duration(n)
		r.each, r.all = float64(cost), float64(r.used)/float64(n)
		each, idle = append(each, cost), append(idle, r.idle)
		storeUsed += r.storeUsed
		commands += r.commands
		requests += r.requests
	}
	slices.Sort(each)
	slices.Sort(idle)
	slices.Sort(latency)
	n, near := len(each), 10*time.Nanosecond
	at := func(q float64) time.Duration {
		return (time.Duration(latency[int(q*float64(len(latency)-1))]) * time.Microsecond).Round(10 * time.Microsecond)
	}
	fmt.Fprintf(w, "| %s | %d | %v | %v (%v-%v) | %v | %v | %.2f | %v |\n", s.name, len(latency),
		idle[n/2].Round(time.Microsecond), each[n/2].Round(near), each[n/4].Round(near), each[3*n/4].Round(near),
		at(0.5), at(0.99), float64(commands)/float64(requests)/float64(len(s.p.addrs)),
		(storeUsed / time.Duration(requests)).Round(time.Microsecond))
	return nil
}
