package balance

// least draws two different servers, with chances by weight, and takes the one of the lower
// cost; of equal ones the first, so that idle servers get requests by weight.
func (s *Set) least(t *tier, r *Request) *Server {
	for {
		i, j := t.pair(r.Random)
		if !s.may(t, i, r) || !s.may(t, j, r) {
			if i, j = s.permitted(t, r); i < 0 {
				return nil
			}
		}
		if t.prefers(j, i, r.Now) {
			i = j
		}
		// Otherwise it probes, and another caller was first; it is busy now.
		if t.acquire(i) {
			return t.servers[i]
		}
	}
}

// pair draws two servers from a number. They are the same if there is only one.
func (t *tier) pair(random uint64) (i, j int) {
	n := len(t.servers)
	again := mix(random)
	switch {
	case n == 1:
		return 0, 0
	case t.equal:
		i, j = int(below(random, uint64(n))), int(below(again, uint64(n-1)))
		if j >= i {
			j++
		}
		return i, j
	}
	i = t.draw(random)
	// Drawing again until it is another is as drawing among the others. Heavy servers may need
	// many attempts, so the last one is exactly that.
	for range 3 {
		if j = t.draw(again); j != i {
			return i, j
		}
		again = mix(again)
	}
	x := below(again, t.sum-t.weights[i])
	if x >= t.ends[i]-t.weights[i] {
		x += t.weights[i]
	}
	return i, t.from(0, x)
}

// draw returns a server with chances by weight, from a number.
func (t *tier) draw(random uint64) int {
	return t.from(int(t.guides[below(random, uint64(len(t.guides)))]), below(random, t.sum))
}

// from returns the server whose part of the sum of weights x, less than the sum, is in. It is
// not before i.
func (t *tier) from(i int, x uint64) int {
	for t.ends[i] <= x {
		i++
	}
	return i
}

// permitted is pair among the servers that may get r, or -1 if there are none. It looks at
// all, and is only for retries and when a server probes.
func (s *Set) permitted(t *tier, r *Request) (i, j int) {
	i = s.draw(t, r, r.Random, -1)
	if i < 0 {
		return -1, -1
	}
	if j = s.draw(t, r, mix(r.Random), i); j < 0 {
		j = i
	}
	return i, j
}

// draw returns one server that may get r, other than without, or -1. What a server may get
// can change between the two passes: the second goes on to the last that it has seen.
func (s *Set) draw(t *tier, r *Request, random uint64, without int) int {
	sum := uint64(0)
	for i, w := range t.weights {
		if i != without && s.may(t, i, r) {
			sum += w
		}
	}
	at, x := -1, below(random, sum)
	for i, w := range t.weights {
		if i == without || !s.may(t, i, r) {
			continue
		}
		at = i
		if x < w {
			break
		}
		x -= w
	}
	return at
}

// prefers reports whether i is better than j.
func (t *tier) prefers(i, j int, now int64) bool {
	if t.special && t.limits[i]&one != t.limits[j]&one {
		return t.limits[i]&one != 0 // it needs its probe, however slow it was
	}
	return t.cost(i, now) < t.cost(j, now)
}

// unmeasured is the cost of requests to a server that has not responded yet: more than that
// of any that has. Without requests it costs nothing, so it gets one, and the next when it
// has responded.
const unmeasured = 1e18

func (t *tier) cost(i int, now int64) float64 {
	s := t.servers[i]
	n := s.inFlight.Load()
	queue := float64(max(n, 0)) * t.scales[i]
	average := s.average(n, now)
	if average == 0 && n > 0 {
		return unmeasured * (1 + queue)
	}
	return average * (1 + queue)
}
