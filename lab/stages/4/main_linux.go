// Command 4 is the fourth stage: a loop of the third for each processor, each with a listening socket of its own.
// README.md tells the story.
package main

import (
	"flag"
	"runtime"

	"github.com/chert-http/chert/lab/serve"
	"github.com/chert-http/chert/lab/stages/loop"
	"github.com/chert-http/chert/lab/stages/socket"
)

var loops = flag.Int("loops", max(2, runtime.NumCPU()), "how many threads")

func main() { serve.Main(run) }

func run(addr string) error {
	runtime.GOMAXPROCS(*loops)
	failed := make(chan error)
	for range *loops {
		// SO_REUSEPORT: the kernel gives each new connection to one of the sockets. The loops share nothing at all, and
		// there is nothing to lock.
		listener, err := socket.Listen(addr, true)
		if err != nil {
			return err
		}
		l, err := loop.New(listener)
		if err != nil {
			return err
		}
		go func() {
			runtime.LockOSThread()
			failed <- l.Run()
		}()
	}
	return <-failed
}
