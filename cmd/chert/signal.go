package main

import (
	"os"
	"os/signal"
	"syscall"
)

// stopSignals starts to deliver the signals that ask for a stop: the first means drain, the second means now. release
// gives them back to the runtime.
//
// An interrupt that was ignored when the program started stays ignored: a shell script starts its background jobs
// that way, so that Ctrl-C ends the script and not them. Notify would undo it.
func stopSignals() (stop <-chan os.Signal, release func()) {
	// Room for both, because signal.Notify drops what nobody is ready to take.
	c := make(chan os.Signal, 2)
	signal.Notify(c, syscall.SIGTERM)
	if !signal.Ignored(os.Interrupt) {
		signal.Notify(c, os.Interrupt)
	}
	return c, func() { signal.Stop(c) }
}
