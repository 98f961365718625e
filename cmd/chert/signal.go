package main

import (
	"os"
	"os/signal"
	"syscall"
)

// signals starts to deliver the signals that the server acts on. The first of stop begins a drain, the second ends
// it; those of hangup cause a reload, those of upgrade an upgrade. release restores their default.
//
// An interrupt or SIGQUIT that was ignored when the program started stays ignored: shell scripts start background
// jobs that way, so that Ctrl-C ends the script and not the jobs. Notify would undo it.
func signals() (stop, hangup, upgrade <-chan os.Signal, release func()) {
	// Room for both, because signal.Notify drops a signal if the channel is full.
	c := make(chan os.Signal, 2)
	signal.Notify(c, syscall.SIGTERM)
	for _, sig := range interrupts {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
	reload, done := hangups(c)
	upgrades := make(chan os.Signal, 1)
	notifyUpgrades(upgrades)
	return c, reload, upgrades, func() {
		signal.Stop(c)
		signal.Stop(upgrades)
		done()
	}
}
