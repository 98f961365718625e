//go:build !unix

package main

import "os"

// hangups delivers nothing: these systems have no SIGHUP to send.
func hangups(chan<- os.Signal) (reload <-chan os.Signal, done func()) { return nil, func() {} }
