package balance

// Moved returns which part of all keys, from 0 to 1, is at home at another server under b
// than under a. It is exact: weights decide alone, and the hash is taken for even. A Set
// without servers shares no home with any other.
//
// A key stays at server i if i is first in both races, see hash.go. Let i arrive at the
// time e/w under a and e/w' under b, for the same e: then each other j must not arrive
// before, which is to exceed e * max(wj/wi, wj'/wi') with its own number. The numbers are
// exponentially distributed, so the chance is 1 / (1 + the sum of these maxima).
func Moved(a, b *Set) float64 {
	type pair struct{ a, b float64 }
	weights := make(map[uint64]pair, len(a.homes.hashes)+len(b.homes.hashes))
	for i, h := range a.homes.hashes {
		weights[h] = pair{a: float64(a.homes.weights[i])}
	}
	for i, h := range b.homes.hashes {
		weights[h] = pair{weights[h].a, float64(b.homes.weights[i])}
	}
	if len(weights) == 0 {
		return 0
	}
	// In the order of the lists, so that the sums are always the same.
	stays := 0.0
	order := make([]pair, 0, len(weights))
	for _, h := range a.homes.hashes {
		order = append(order, weights[h])
	}
	for _, h := range b.homes.hashes {
		if w := weights[h]; w.a == 0 {
			order = append(order, w)
		}
	}
	for i, w := range order {
		if w.a == 0 || w.b == 0 {
			continue
		}
		sum := 1.0
		for j, o := range order {
			if j != i {
				sum += max(o.a/w.a, o.b/w.b)
			}
		}
		stays += 1 / sum
	}
	return max(0, 1-stays)
}
