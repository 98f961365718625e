package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A store is what instances share topics through.
type store interface {
	name() string
	url() string        // of an instance
	cpu() time.Duration // that its servers have used
	reads() int         // how many commands have read, or 0
	fail() error        // something fails, at random
	faults() string     // what has failed
	heal() error        // waits until all is well
	// kept returns the IDs of all events of each topic in the end.
	kept() ([][]id, error)
	kill()
}

// startStore starts the servers of a store.
func startStore(p *plan) (store, error) {
	switch p.store {
	case "redis":
		return startRedis(p)
	case "nats":
		return startNATS(p)
	}
	return nil, fmt.Errorf("-store %q: want redis or nats", p.store)
}

// chaos makes things fail, one after another.
type chaos struct {
	p       *plan
	store   store
	servers servers
	kills   int
}

func (c *chaos) String() string {
	return fmt.Sprintf("instances killed: %d, %s", c.kills, c.store.faults())
}

// run makes something fail every few seconds.
func (c *chaos) run(long time.Duration) {
	for end := time.Now().Add(long); c.p.sleep(2*time.Second+rand.N(5*time.Second)) && time.Now().Before(end); {
		fail := c.store.fail
		if rand.N(5) < 2 {
			fail = c.instance
		}
		if err := fail(); err != nil {
			fmt.Fprintln(c.p.log, err)
		}
	}
}

// sleep returns false if all is over.
func (p *plan) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-p.ctx.Done():
		return false
	}
}

// instance kills an instance and starts it again.
func (c *chaos) instance() error {
	c.kills++
	s := c.servers[rand.N(len(c.servers))]
	s.kill()
	c.p.sleep(rand.N(2 * time.Second))
	return s.start()
}
