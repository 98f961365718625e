// Package measure reads the cost of a process tree from Linux's /proc and clocks: processor time, resident memory, and
// the time that the host took away (steal).
package measure

// It starts nothing and knows nothing of HTTP.
