//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// interrupts are the signals of a terminal that stop the server. SIGQUIT stops nginx after its running requests, and
// some container images send it.
var interrupts = []os.Signal{os.Interrupt, syscall.SIGQUIT}

// hangups delivers SIGHUP. If it was sent because the terminal is gone it is not a request to reload: it goes to
// stop, unless it was ignored when the program started, as with nohup.
func hangups(stop chan<- os.Signal) (reload <-chan os.Signal, done func()) {
	nohup, terminal := signal.Ignored(syscall.SIGHUP), hasTerminal()
	in, out, end := make(chan os.Signal, 1), make(chan os.Signal), make(chan struct{})
	signal.Notify(in, syscall.SIGHUP)
	go func() {
		for {
			var sig os.Signal
			select {
			case sig = <-in:
			case <-end:
				return
			}
			to := chan<- os.Signal(out)
			if terminal && !hasTerminal() {
				terminal = false
				if nohup {
					continue
				}
				to = stop
			}
			select {
			case to <- sig:
			case <-end:
				return
			}
		}
	}()
	return out, func() {
		signal.Stop(in)
		close(end)
	}
}

// reopens calls f at each SIGUSR1, one call at a time, until the result is called.
func reopens(f func()) (done func()) {
	in, end := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(in, syscall.SIGUSR1)
	go func() {
		for {
			select {
			case <-in:
				f()
			case <-end:
				return
			}
		}
	}()
	return func() {
		signal.Stop(in)
		close(end)
	}
}

// notifyUpgrades sends SIGUSR2 to c.
func notifyUpgrades(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR2) }

// hasTerminal reports whether the process has a controlling terminal.
func hasTerminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
