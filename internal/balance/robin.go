package balance

// robin is nginx's smooth weighted round robin: in each turn every server gets its weight as
// credit; the one with the most is chosen and pays the sum of what was given. Servers that
// cannot be chosen take no part, and keep their credit.
func (s *Set) robin(t *tier, r *Request) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := !t.special && len(r.Tried) == 0
	for {
		best, sum := -1, int64(0)
		for i := range t.servers {
			if !free && !s.may(t, i, r) {
				continue
			}
			w := int64(t.weights[i])
			sum += w
			s.credit[t.members[i]] += w
			if best < 0 || s.credit[t.members[i]] > s.credit[t.members[best]] {
				best = i
			}
		}
		if best < 0 {
			return nil
		}
		s.credit[t.members[best]] -= sum
		// Otherwise it probes, and has got its one request by another Set; it is busy now.
		if t.acquire(best) {
			return t.servers[best]
		}
	}
}
