//go:build linux || darwin

package chert

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyUpgrades sends the signals that ask for an upgrade to c.
func notifyUpgrades(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR2) }
