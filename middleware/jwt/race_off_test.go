//go:build !race

package jwt

const raceEnabled = false
