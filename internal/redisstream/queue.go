package redisstream

import (
	"math/rand/v2"
	"sync"
	"time"
)

// queue is what waits to be written while Redis is away, in order.
type queue struct {
	c *Client

	mu     sync.Mutex
	items  []item
	closed bool
}

type item struct {
	s      *Stream
	fields []string
	maybe  bool // it may have been written
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// follow adds an entry if others wait, which it must not overtake.
func (q *queue) follow(s *Stream, fields []string) (queued bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return false, nil
	}
	return true, q.push(item{s: s, fields: fields})
}

// begin adds an entry that could not be written.
func (q *queue) begin(s *Stream, fields []string, why error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := len(q.items) == 0
	if err := q.push(item{s: s, fields: fields, maybe: true}); err != nil || !first {
		return err
	}
	q.c.running.Go(func() { q.run(why) })
	return nil
}

func (q *queue) push(i item) error {
	if q.closed {
		return ErrClosed
	}
	if len(q.items) >= q.c.o.Queue {
		q.c.failed.Add(1)
		return ErrFull
	}
	q.items = append(q.items, i)
	return nil
}

// run writes until nothing waits.
func (q *queue) run(why error) {
	c := q.c
	c.setAway(1, why)
	defer c.setAway(-1, nil)
	wait := firstWait
	for {
		q.mu.Lock()
		if len(q.items) == 0 {
			q.mu.Unlock()
			return
		}
		i := q.items[0]
		q.mu.Unlock()
		var err error
		if i.maybe {
			err = i.s.addAgain(i.fields)
		} else {
			_, err = i.s.add(i.fields)
		}
		if err != nil && temporary(err) {
			q.mu.Lock()
			if len(q.items) > 0 {
				q.items[0].maybe = true
			}
			q.mu.Unlock()
			if !pause(c.closing, wait+rand.N(wait)) {
				return
			}
			wait = min(2*wait, maxWait)
			continue
		}
		if wait = firstWait; err != nil {
			c.failed.Add(1)
			c.o.Logger.Error(c.o.What+": Redis refuses what has waited for it", "error", c.Explain(err))
		}
		q.mu.Lock()
		if len(q.items) > 0 { // not closed meanwhile
			q.items[0] = item{}
			q.items = q.items[1:]
		}
		q.mu.Unlock()
	}
}

// How long is waited after something has failed, up to twice of it.
const (
	firstWait = 20 * time.Millisecond
	maxWait   = time.Second
)

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.c.failed.Add(uint64(len(q.items)))
	q.items = nil
}
