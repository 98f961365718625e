// Package poll tells a loop which of many descriptors can make progress.
//
// It knows descriptors and keys; it must not know connections, timers or
// HTTP. loop and conn may import it.
package poll
