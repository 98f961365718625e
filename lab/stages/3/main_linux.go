// Command 3 is the third stage: one thread that serves all connections, by sleeping only where any of them can wake it.
// README.md tells the story.
package main

import (
	"runtime"

	"github.com/chert-http/chert/lab/serve"
	"github.com/chert-http/chert/lab/stages/loop"
	"github.com/chert-http/chert/lab/stages/socket"
)

func main() { serve.Main(run) }

func run(addr string) error {
	runtime.LockOSThread()
	listener, err := socket.Listen(addr, false)
	if err != nil {
		return err
	}
	l, err := loop.New(listener)
	if err != nil {
		return err
	}
	return l.Run()
}
