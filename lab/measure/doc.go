// Package measure reads from Linux's /proc and clocks what a process tree costs: processor time, resident memory, and
// the time the host took away (steal).
//
// It starts nothing and knows nothing of HTTP.
package measure
