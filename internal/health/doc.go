// Package health keeps the state of upstream servers: from the requests that were sent to them (passive), from checks
// that are made for the purpose (active), and from what the operator orders.
//
// A Server that fails is ejected for a time that doubles with each ejection, then gets one request at a time, and is up
// again after a few of them have succeeded. Checks have a state of their own, which nothing overrides. Each change of
// either is kept with its cause.
//
// A Registry shares Servers among sites and among the generations of a configuration, so that a reload forgets nothing.
package health

// Models are Envoy's outlier detection (consecutive failures, success rate, ejection times) and HAProxy's "observe"
// with "error-limit". Envoy has two thresholds that contradict each other, max_ejection_percent and panic; here a
// server's state never depends on others, and the one panic rule is the balance's: if fewer than half of the weight is
// Ready, it calls Admit with override for those that are not Barred.
//
//	             first success                   failures
//	  Unknown ------------------> Up <----+---------------> Ejected
//	     |  failures              |       |                   |   ^
//	     +------------------------|-------|-----------------> |   |
//	                              |       | successes    time |   | failure
//	                              |       |                   v   |
//	                              |       +---------------- Probing
//	                              v
//	  any but Draining --> Draining --> Unknown, by the operator
//
// The table moves in state.go is the reference. What a connection's end says about a server is decided before:
// reason.Code.Blames and, for connections that were idle, retry.Attempt.Blames.
//
// The package has no sockets, goroutines or clock: time is passed in, in nanoseconds of one monotonic clock, as in
// internal/timer, and so is chance. It knows neither balance nor retry.
