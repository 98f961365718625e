// Package wire is what the processes of lab/million say to each other.
package wire

import "time"

// Failed is the answer to what could not be done.
type Failed struct {
	Error string `json:"error"`
}

// Server is what a server answers.
type Server struct {
	Open          int64
	Heap, Objects uint64
	// Collection is how long a full collection took.
	Collection, CollectionCPU, Pause time.Duration
	// Took and CPU are of what was asked for, or CPU is of the process.
	Took, CPU time.Duration
}

// Clients is what the clients answer.
type Clients struct {
	Open, Streams int
	Took          time.Duration
	Limit         string // what ended opening; "" if nothing has
	Latencies     []time.Duration
}
