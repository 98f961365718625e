// Package window counts events of the last seconds, for limits that compare what happened with what was allowed. It is
// safe for concurrent use, without locks.
package window

// Time is passed in, in nanoseconds of one monotonic clock, as in internal/timer. Loops read their clocks once in a
// turn, so a caller's time may be behind that of another.
//
// It imports the standard library only. health and retry may import it.
