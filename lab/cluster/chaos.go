package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// chaos makes things fail, one after another.
type chaos struct {
	p       *plan
	r       *redisServers
	servers servers

	kills, restarts, failovers, cuts int
}

func newChaos(p *plan, r *redisServers, servers servers) *chaos {
	return &chaos{p: p, r: r, servers: servers}
}

func (c *chaos) String() string {
	return fmt.Sprintf("instances killed: %d, Redis restarted: %d, failovers: %d, times all connections to Redis were cut: %d",
		c.kills, c.restarts, c.failovers, c.cuts)
}

// run makes something fail every few seconds.
func (c *chaos) run(long time.Duration) {
	for end := time.Now().Add(long); c.sleep(2*time.Second+rand.N(5*time.Second)) && time.Now().Before(end); {
		var err error
		switch n := rand.N(20); {
		case n < 8:
			err = c.instance()
		case n < 14:
			err = c.cut()
		case n < 17:
			err = c.restart()
		default:
			err = c.failover()
		}
		if err != nil {
			fmt.Fprintln(c.p.log, err)
		}
	}
}

func (c *chaos) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-c.p.ctx.Done():
		return false
	}
}

// instance kills an instance and starts it again.
func (c *chaos) instance() error {
	c.kills++
	s := c.servers[rand.N(len(c.servers))]
	s.kill()
	c.sleep(rand.N(2 * time.Second))
	return s.start()
}

// cut ends all connections to the primary.
func (c *chaos) cut() error {
	c.cuts++
	return c.r.now().do("CLIENT", "KILL", "TYPE", "normal").Err()
}

// restart kills the primary and starts it again before the sentinel acts, with its data.
func (c *chaos) restart() error {
	c.restarts++
	s := c.r.now()
	s.kill()
	c.sleep(rand.N(500 * time.Millisecond))
	return s.start()
}

// failover kills the primary until the replica has taken over.
func (c *chaos) failover() error {
	old := c.r.now()
	replica := c.r.two[1-c.r.primary]
	if text, _ := replica.do("INFO", "replication").Text(); !strings.Contains(text, "master_link_status:up") {
		return nil // it is not ready
	}
	c.failovers++
	old.kill()
	for range 300 {
		if c.r.now() != old {
			break
		}
		if !c.sleep(100 * time.Millisecond) {
			return nil
		}
	}
	c.sleep(rand.N(time.Second))
	return old.start() // the sentinel makes it a replica
}

// heal waits until all is well.
func (c *chaos) heal() error {
	for range 300 {
		if text, _ := c.r.now().do("INFO", "replication").Text(); strings.Contains(text, "role:master") &&
			strings.Contains(text, "state=online") {
			c.sleep(3 * time.Second)
			return nil
		}
		if !c.sleep(100 * time.Millisecond) {
			break
		}
	}
	return fmt.Errorf("there is no primary with a replica after half a minute")
}
