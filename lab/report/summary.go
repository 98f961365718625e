package report

import "slices"

// Summary is what is said of a series of rounds. Best is the quietest round: neighbours on a shared machine can only
// make the others worse. Median shows what the machine was like.
type Summary struct {
	Best   float64 `json:"best"`
	Median float64 `json:"median"`
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
