package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// exitWait is how long the process may take to end after a second signal, by which it may be waiting for who reads its
// output.
const exitWait = time.Second

// signals starts to deliver the signals that the server acts on. The first of stop begins a drain, the second ends
// it, and the process soon; those of hangup cause a reload, those of upgrade an upgrade. release restores their
// default.
//
// An interrupt or SIGQUIT that was ignored when the program started stays ignored: shell scripts start background
// jobs that way, so that Ctrl-C ends the script and not the jobs. Notify would undo it.
func signals() (stop, hangup, upgrade <-chan os.Signal, release func()) {
	// Room for both, because signal.Notify drops a signal if the channel is full.
	c, out, end := make(chan os.Signal, 2), make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(c, syscall.SIGTERM)
	// Never stopped, and nothing receives it: a write to stdout or stderr whose reader is gone fails, but does not end
	// the server.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	for _, sig := range interrupts {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
	reload, done := hangups(c)
	upgrades := make(chan os.Signal, 1)
	notifyUpgrades(upgrades)
	go passStops(c, out, end, time.Now, func() {
		time.AfterFunc(exitWait, func() { os.Exit(exitFailure) })
	})
	return out, reload, upgrades, func() {
		signal.Stop(c)
		signal.Stop(upgrades)
		done()
		close(end)
	}
}

// sameSignal is how soon after the first signal another one of its kind is no second: supervisors and timeout(1) signal
// a process and then its group.
const sameSignal = 300 * time.Millisecond

// passStops passes on two signals that stop the server, until end is closed. exit is called at the second.
func passStops(in <-chan os.Signal, out chan<- os.Signal, end <-chan struct{}, now func() time.Time, exit func()) {
	var first os.Signal
	var at time.Time
	for {
		var sig os.Signal
		select {
		case sig = <-in:
		case <-end:
			return
		}
		switch t := now(); {
		case first == nil:
			first, at = sig, t
			out <- sig
		case sig != first || t.Sub(at) >= sameSignal:
			out <- sig
			exit()
			return
		}
	}
}
