package experiment

import (
	"errors"
	"math"
)

// point is one measurement: the connections that ask, all that are open, the bytes of an answer, and what a request cost.
type point struct {
	active, open, bytes int
	cost                float64 // microseconds
}

// model is the cost of a request on one core:
//
//	fixed + wait/active + connected*open + byte*bytes
//
// The second part is what it costs to sleep and wake up, which requests that are there at the same time share; the third
// is what caches lose when there are more connections.
type model struct {
	fixed, wait, connected, byte float64
}

func (m model) cost(active, open, bytes float64) float64 {
	return m.fixed + m.wait/active + m.connected*open + m.byte*bytes
}

// fit finds the model with the least squares of relative residuals: a percent counts the same for cheap and for
// expensive requests.
func fit(points []point) (model, error) {
	const n = 4
	var a [n][n + 1]float64 // normal equations
	for _, p := range points {
		x := [n]float64{1, 1 / float64(p.active), float64(p.open), float64(p.bytes)}
		for i := range n {
			for j := range n {
				a[i][j] += x[i] * x[j] / (p.cost * p.cost)
			}
			a[i][n] += x[i] / p.cost
		}
	}
	// The columns differ by many orders of magnitude: scaled, they are solved without losing digits.
	var scale [n]float64
	for i := range n {
		if a[i][i] <= 0 {
			return model{}, errors.New("too few measurements for a model")
		}
		scale[i] = math.Sqrt(a[i][i])
	}
	for i := range n {
		for j := range n {
			a[i][j] /= scale[i] * scale[j]
		}
		a[i][n] /= scale[i]
	}
	for i := range n {
		pivot := i
		for k := i + 1; k < n; k++ {
			if math.Abs(a[k][i]) > math.Abs(a[pivot][i]) {
				pivot = k
			}
		}
		a[i], a[pivot] = a[pivot], a[i]
		if math.Abs(a[i][i]) < 1e-12 {
			return model{}, errors.New("the measurements do not determine a model")
		}
		for k := range n {
			if k == i {
				continue
			}
			f := a[k][i] / a[i][i]
			for j := i; j <= n; j++ {
				a[k][j] -= f * a[i][j]
			}
		}
	}
	var solution [n]float64
	for i := range n {
		solution[i] = a[i][n] / a[i][i] / scale[i]
	}
	return model{solution[0], solution[1], solution[2], solution[3]}, nil
}
