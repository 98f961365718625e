//go:build !unix

package main

import "os"

// interrupts are the signals of a terminal that stop the server.
var interrupts = []os.Signal{os.Interrupt}

// hangups delivers nothing: these systems have no SIGHUP to send.
func hangups(chan<- os.Signal) (reload <-chan os.Signal, done func()) { return nil, func() {} }

// notifyUpgrades does nothing: these systems have no SIGUSR2 to send.
func notifyUpgrades(chan<- os.Signal) {}

// reopens does nothing: these systems have no SIGUSR1 to send.
func reopens(func()) (done func()) { return func() {} }
