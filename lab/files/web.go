package files

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

// The sizes of files on the web are about log-normal: most are small, most bytes are in the large ones.
const (
	medianSize = 8 << 10
	sizeSpread = 1.9 // standard deviation of the size's logarithm
	smallest   = 64
	largest    = 1 << 20
)

// perFolder is how many files one folder has.
const perFolder = 100

// kinds are the extensions of files, as often as they are on a site, more or less.
var kinds = [...]string{"html", "html", "html", "js", "js", "css", "png", "jpg", "jpg", "svg", "json", "woff2"}

// Web makes up n files as a site has them, mixed in type and size. 10,000 have some 400 MB.
func Web(seed uint64, n int) []File {
	r := rand.New(rand.NewPCG(seed, 1))
	all := make([]File, n)
	for i := range all {
		size := medianSize * math.Exp(sizeSpread*r.NormFloat64())
		all[i] = File{
			Name: fmt.Sprintf("/d%02d/f%04d.%s", i/perFolder, i, kinds[r.IntN(len(kinds))]),
			Size: int64(min(max(size, smallest), largest)),
		}
	}
	return all
}

// Zipf draws count indexes of n things, the k-th most popular with a probability in proportion to 1/k^s. What is popular
// follows from the seed, and not from the index. Package rand's Zipf does not know an s of 1 or less.
func Zipf(seed uint64, n int, s float64, count int) []int {
	r := rand.New(rand.NewPCG(seed, 2))
	byRank := r.Perm(n)
	upTo := make([]float64, n) // the weight of this rank and all above it
	var sum float64
	for k := range upTo {
		sum += math.Pow(float64(k+1), -s)
		upTo[k] = sum
	}
	drawn := make([]int, count)
	for i := range drawn {
		x := r.Float64() * sum
		drawn[i] = byRank[sort.Search(n-1, func(k int) bool { return upTo[k] > x })]
	}
	return drawn
}
