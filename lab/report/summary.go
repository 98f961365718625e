package report

import "slices"

// Summary is what is said of a series of rounds. Best is the quietest round: neighbours on a shared machine can only
// make the others worse. Median shows what the machine was like.
type Summary struct {
	Best   float64 `json:"best"`
	Median float64 `json:"median"`
}

// each takes one figure out of every round.
func each[Round any](rounds []Round, f func(Round) float64) []float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = f(r)
	}
	return values
}

// Lowest summarises figures of which less is better.
func Lowest(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	return Summary{Best: slices.Min(values), Median: Median(values)}
}

// Highest summarises figures of which more is better.
func Highest(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	return Summary{Best: slices.Max(values), Median: Median(values)}
}

// Median returns the middle value, or the mean of the two in the middle; 0 for none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// Quartiles are the values a quarter and three quarters of the way through a series, interpolated: half of the rounds
// lie between them.
func Quartiles(values []float64) (low, high float64) {
	return Percentile(values, 0.25), Percentile(values, 0.75)
}

// Percentile is the value that a share of a series is below, interpolated; 0 for none.
func Percentile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	place := share * float64(len(sorted)-1)
	below := int(place)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (place-float64(below))*(sorted[above]-sorted[below])
}

// To divides best by best and median by median; 0 where there is nothing to divide by.
func (s Summary) To(other Summary) Summary {
	return Summary{Best: quotient(s.Best, other.Best), Median: quotient(s.Median, other.Median)}
}

func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
