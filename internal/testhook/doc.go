// Package testhook is how tests outside of the root reach what a Server has and
// its users do not need: the root registers itself, and internal/testing/engines
// asks, or a test that has no use for that.
//
// It knows what a Server does in words of the packages below. Nothing but the root
// and tests may import it.
package testhook
