// Package simulate runs chert on its simulated kernel, see docs/testing.md.
package simulate
