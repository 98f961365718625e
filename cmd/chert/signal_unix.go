//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// interrupts are the signals of a terminal that stop the server. SIGQUIT stops nginx after its running requests, and
// some container images send it.
var interrupts = []os.Signal{os.Interrupt, syscall.SIGQUIT}

// hangups delivers SIGHUP. If it was sent because the terminal is gone it is not a request to reload: it goes to stop,
// unless it was ignored when the program started, as with nohup.
func hangups(stop chan<- os.Signal) (reload <-chan os.Signal, done func()) {
	in, out, end := make(chan os.Signal, 1), make(chan os.Signal), make(chan struct{})
	h := &hangup{in: in, stop: stop, reload: out, end: end, gone: terminalGone}
	if signal.Ignored(syscall.SIGHUP) || !hasTerminal() {
		h.missed = longGone
	}
	signal.Notify(in, syscall.SIGHUP)
	go h.pass(time.NewTicker(terminalEvery))
	return out, func() {
		signal.Stop(in)
		close(end)
	}
}

// A terminal is looked for every terminalEvery. When it has been missed longGone times in succession, no signal comes
// from its end any more: the shell has ended without one to its jobs.
const (
	terminalEvery = time.Second
	longGone      = 3
)

type hangup struct {
	in           <-chan os.Signal
	stop, reload chan<- os.Signal
	end          <-chan struct{}
	gone         func() bool // the terminal
	missed       int
}

// pass passes the signals on until end is closed.
func (h *hangup) pass(t *time.Ticker) {
	defer t.Stop()
	for {
		if h.missed >= longGone {
			t.Stop()
		}
		var sig os.Signal
		select {
		case sig = <-h.in:
		case <-t.C:
			if h.missed++; !h.gone() {
				h.missed = 0
			}
			continue
		case <-h.end:
			return
		}
		to := h.reload
		if h.missed < longGone && h.gone() {
			h.missed, to = longGone, h.stop
		}
		select {
		case to <- sig:
		case <-h.end:
			return
		}
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
func hasTerminal() bool { return openTerminal() == nil }

// terminalGone reports whether a process that had one has lost it. Other errors, such as of too many open files, do not
// tell.
func terminalGone() bool { return errors.Is(openTerminal(), syscall.ENXIO) }

func openTerminal() error {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err == nil {
		f.Close()
	}
	return err
}
