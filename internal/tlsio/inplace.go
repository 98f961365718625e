//go:build !go1.27

package tlsio

// inPlace: TestNothingPointsIntoLent has looked at crypto/tls of this version of Go.
const inPlace = true
