package main

import (
	"os"
	"os/signal"
	"syscall"
)

// signals starts to deliver the signals that the server acts on. The first of stop means drain, the second means now;
// those of hangup mean reload. release gives them back to the runtime.
//
// An interrupt or SIGQUIT that was ignored when the program started stays ignored: a shell script starts its background
// jobs that way, so that Ctrl-C ends the script and not them. Notify would undo it.
func signals() (stop, hangup <-chan os.Signal, release func()) {
	// Room for both, because signal.Notify drops what nobody is ready to take.
	c := make(chan os.Signal, 2)
	signal.Notify(c, syscall.SIGTERM)
	for _, sig := range interrupts {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
	reload, done := hangups(c)
	return c, reload, func() {
		signal.Stop(c)
		done()
	}
}
