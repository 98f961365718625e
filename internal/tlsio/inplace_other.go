//go:build go1.27

package tlsio

// inPlace is false for versions of Go that TestNothingPointsIntoLent has not looked
// at.
const inPlace = false
