//go:build !linux && !darwin

package chert

import "os"

// notifyUpgrades does nothing: no signal asks for an upgrade here.
func notifyUpgrades(chan<- os.Signal) {}
