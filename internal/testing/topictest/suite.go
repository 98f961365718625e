package topictest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Run runs all tests.
func Run(t *testing.T, setup func(t *testing.T) *Setup) {
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, s *Setup)
	}{
		{"Crossing", crossing},
		{"Resuming", resuming},
		{"Old", old},
		{"Ahead", ahead},
		{"Forged", forged},
		{"Away", away},
		{"Queue", queue},
		{"Lost", lost},
		{"Idle", idle},
		{"OwnID", ownID},
		{"Random", Random},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, setup(t))
		})
	}
}

func numbered(from, to int) (all []string) {
	for n := from; n < to; n++ {
		all = append(all, fmt.Sprintf("event %d", n))
	}
	return all
}

// Events cross from each process to all, in one order.
func crossing(t *testing.T, s *Setup) {
	a, b, c := s.Start(t, 0), s.Start(t, 0), s.Start(t, 0)
	var clients []*Client
	for _, i := range []*Instance{a, b, c} {
		for range 3 {
			clients = append(clients, i.Client("news", ""))
		}
	}
	for _, c := range clients {
		c.Announced() // an empty topic has a beginning, too
	}
	var all sync.WaitGroup
	for n, i := range []*Instance{a, b, c} {
		all.Go(func() {
			for k := range 50 {
				if _, err := i.publish("news", fmt.Sprint(n, " ", k)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	var first []string
	for k, c := range clients {
		var got []string
		for range 150 {
			e, err := c.next(time.Minute)
			if err != nil || e.Type != "" {
				t.Fatalf("client %d: %+v, %v", k, e, err)
			}
			got = append(got, e.Data)
		}
		if first == nil {
			first = got
		} else if !slices.Equal(got, first) {
			t.Fatalf("client %d has another order:\n%q\n%q", k, got, first)
		}
	}
}

// A client continues on another process, which has begun to read the topic only then or before.
func resuming(t *testing.T, s *Setup) {
	a, b := s.Start(t, 0), s.Start(t, 0)
	c := a.Client("news", "")
	start := c.Announced()
	for _, e := range numbered(0, 10) {
		a.Publish("news", e)
	}
	c.Wants(numbered(0, 5)...)
	c.Close()
	b.Client("news", c.Last).Wants(numbered(5, 10)...)
	b.Client("news", start).Wants(numbered(0, 10)...)
	c = b.Client("news", "")
	c.Announced()
	b.Publish("news", "more")
	c.Wants("more")
	a.Client("news", c.Last).Close()
	a.Publish("news", "last")
	a.Client("news", c.Last).Wants("last")
}

// What is older than the history is reported, and nothing comes twice.
func old(t *testing.T, s *Setup) {
	a, b := s.Start(t, 0), s.Start(t, 0)
	c := a.Client("news", "")
	start := c.Announced()
	n := s.History + 300
	for from := 0; from < n; from += 100 { // less than what the store keeps, so that it can be read in time
		some := numbered(from, min(from+100, n))
		for _, e := range some {
			a.Publish("news", e)
		}
		c.Wants(some...)
	}
	for k, i := range []*Instance{a, b, b} {
		c := i.Client("news", start)
		c.Wants(gap)
		e, err := c.next(time.Minute)
		var first int
		_, scan := fmt.Sscanf(e.Data, "event %d", &first)
		if scan != nil || err != nil || first == 0 || first > n-s.History {
			t.Fatalf("%+v, %v, %v", e, scan, err)
		}
		c.Wants(numbered(first+1, n)...)
		// A process that has not read the topic before does not know yet.
		if complete := <-i.Joined; k == 0 && !complete || k == 2 && complete {
			if k == 2 {
				t.Error("Join says that it is complete")
			}
		}
	}
}

// A client comes from a process that is ahead of the one it comes to.
func ahead(t *testing.T, s *Setup) {
	a, b := s.Start(t, 0), s.Start(t, 0)
	stays := b.Client("news", "")
	stays.Announced()
	c := a.Client("news", "")
	c.Announced()
	a.Publish("news", "one")
	c.Wants("one")
	stays.Wants("one")
	for round := range 5 {
		one, two := fmt.Sprint(round, " one"), fmt.Sprint(round, " two")
		s.Cut() // both read again, in any order
		a.Eventually("news", one)
		c.Wants(one)
		c.Close()
		c = b.Client("news", c.Last)
		a.Eventually("news", two)
		c.Wants(two)
		stays.Wants(one, two)
		a, b = b, a
		if stays.Close(); round < 4 {
			stays = b.Client("news", stays.Last)
		}
	}
}

// An ID that the store has never given is answered by a gap, and the client gets what follows.
func forged(t *testing.T, s *Setup) {
	a := s.Start(t, 0)
	id := a.Publish("news", "one")
	c := a.Client("news", "")
	c.Announced()
	for _, forged := range []string{
		"nonsense", "1-2-3", "-", strings.Repeat("9", 18) + "-5",
		"18446744073709551615-18446744073709551615", "99999999999999999999-0", "+1-+2", id + "0",
	} {
		c := a.Client("news", forged)
		e, err := c.next(time.Minute)
		if err != nil || e.Type != "gap" {
			t.Fatalf("%q: %+v, %v", forged, e, err)
		}
		c.Close()
	}
}

// While the store is away clients stay, and publishers get an error. Then everyone catches up.
func away(t *testing.T, s *Setup) {
	a, b := s.Start(t, 0), s.Start(t, 0)
	ca, cb := a.Client("news", ""), b.Client("news", "")
	ca.Announced()
	cb.Announced()
	a.Publish("news", "before")
	ca.Wants("before")
	cb.Wants("before")
	s.Away(true)
	if _, err := a.publish("news", "lost"); err == nil {
		t.Error("an event was published")
	} else if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %v", err)
	}
	waits := a.Client("news", cb.Last)
	other := a.Client("other", "")
	s.Away(false)
	b.Eventually("news", "after")
	ca.Wants("after")
	cb.Wants("after")
	waits.Wants("after")
	other.Announced()
	s.Restart(false)
	a.Eventually("news", "again")
	ca.Wants("again")
	cb.Wants("again")
}

// With a queue, events wait for the store, and none is stored twice.
func queue(t *testing.T, s *Setup) {
	const size = 50
	a, b := s.Start(t, size), s.Start(t, 0)
	c := b.Client("news", "")
	c.Announced()
	a.Publish("news", "before")
	c.Wants("before")
	s.Away(true)
	for _, e := range numbered(0, size) {
		if id, err := a.publish("news", e); id != "" || err != nil {
			t.Fatalf("%q, %v", id, err)
		}
	}
	if id, err := a.publish("news", "too much"); id != "" || err == nil {
		t.Errorf("%q, %v", id, err)
	}
	s.Away(false)
	c.Wants(numbered(0, size)...)
	servertest.Eventually(t, "the queue to be empty", func() bool {
		id, err := a.publish("news", "x")
		return id != "" && err == nil
	})
	for round := range 5 {
		// Cut while events are being written: it is not known of some whether they were.
		var all sync.WaitGroup
		all.Go(func() {
			for _, e := range numbered(0, 40) {
				if _, err := a.publish(fmt.Sprint(round), e); err != nil {
					t.Error(err)
				}
			}
		})
		s.Cut()
		all.Wait()
		servertest.Eventually(t, "the queue to be empty", func() bool {
			id, err := a.publish("end", "x")
			return id != "" && err == nil
		})
		a.Eventually(fmt.Sprint(round), "end")
		c := b.Client(fmt.Sprint(round), "nonsense")
		c.Wants(gap)
		c.Wants(numbered(0, 40)...)
		c.Wants("end")
	}
}

// The store loses its data: clients get to know it, and what follows.
func lost(t *testing.T, s *Setup) {
	a, b := s.Start(t, 0), s.Start(t, 0)
	ca, cb := a.Client("news", ""), b.Client("news", "")
	ca.Announced()
	cb.Announced()
	for _, e := range numbered(0, 5) {
		a.Publish("news", e)
	}
	ca.Wants(numbered(0, 5)...)
	cb.Wants(numbered(0, 5)...)
	s.Restart(true)
	a.Eventually("news", "new")
	ca.Wants(gap, "new")
	cb.Wants(gap, "new")
	// One that was not connected meanwhile, on a process that knows of nothing.
	fresh := s.Start(t, 0)
	before := cb.Last
	a.Publish("news", "newer")
	cb.Wants("newer")
	fresh.Client("news", before).Wants("newer")
}

// Topics without clients are not read, and are read again.
func idle(t *testing.T, s *Setup) {
	a, b := s.Start(t, 0), s.Start(t, 0)
	c := a.Client("news", "")
	c.Announced()
	for round := range 3 {
		one, two := fmt.Sprint(round, " one"), fmt.Sprint(round, " two")
		b.Publish("news", one)
		c.Wants(one)
		c.Close()
		topic, _ := a.Topic("news")
		servertest.Eventually(t, "the client to be gone", func() bool { return topic.Len() == 0 })
		b.Publish("news", two)
		c = a.Client("news", c.Last)
		c.Wants(two)
	}
}

// Events of a store have no IDs of their own.
func ownID(t *testing.T, s *Setup) {
	topic, err := s.Start(t, 0).Topic("news")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := topic.Publish(eventstream.Event{ID: "mine", Data: "x"}); err != eventstream.ErrID {
		t.Errorf("got %v", err)
	}
}

// Random has clients move between processes at random while connections are cut: each gets all
// events once and in order.
func Random(t *testing.T, s *Setup) {
	const count, topics = 400, 3
	var instances []*Instance
	for range 3 {
		instances = append(instances, s.Start(t, 10000))
	}
	starts := make([]string, topics)
	for k := range topics {
		c := instances[0].Client(fmt.Sprint(k), "")
		starts[k] = c.Announced()
	}
	var all sync.WaitGroup
	for k := range topics {
		all.Go(func() {
			for n, e := range numbered(0, count) {
				if _, err := instances[k%3].publish(fmt.Sprint(k), e); err != nil {
					t.Error(err)
				}
				if n%16 == 0 {
					time.Sleep(10 * time.Millisecond) // so that it lasts
				}
			}
		})
	}
	for i := range 12 {
		all.Go(func() {
			topic := fmt.Sprint(i % topics)
			last := starts[i%topics]
			for n := 0; n < count; {
				c := instances[rand.N(3)].Client(topic, last)
				for end := n + 1 + rand.N(60); n < end && n < count; n++ {
					e, err := c.next(time.Minute)
					if err != nil || e.Data != fmt.Sprintf("event %d", n) {
						t.Errorf("client %d: %+v (%v), want event %d", i, e, err, n)
						return
					}
				}
				c.Close()
				last = c.Last
			}
		})
	}
	stop := make(chan bool)
	var cutting sync.WaitGroup
	cutting.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(s.CutEvery):
				s.Cut()
			}
		}
	})
	all.Wait()
	close(stop)
	cutting.Wait()
}
