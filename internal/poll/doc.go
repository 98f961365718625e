// Package poll reports which of many descriptors can make progress.
package poll

// It knows descriptors and keys; it must not know connections, timers or
// HTTP. loop and conn may import it.
