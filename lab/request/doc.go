// Package request is one request after another in each way that chert serves them: HTTP/1, HTTP/2 and WebSockets, to
// plain and to direct handlers. Its benchmark is what they cost without a kernel:
//
//	go test -run '^$' -bench . ./request
//
// The kernel is replaced by a poller in memory, below the event loop, so that all of chert runs and no system call is
// made. Of the figures, those of one machine in one minute can be compared; allocations always can.
package request
