//go:build unix

package top

import (
	"os"
	"os/signal"
	"syscall"
)

// fullScreen: terminals understand the sequences that screen writes.
const fullScreen = true

// resizes delivers a value when the terminal has another size.
func resizes() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
