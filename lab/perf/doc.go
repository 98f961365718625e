// Package perf samples where a process spends its time, with Linux's perf, and counts its system calls, with strace.
package perf

// It knows nothing of HTTP or of the servers; experiments say which process, and under which load.
