// Command 2 is the second stage: the same as the first in many threads, so that one silent client holds up only its own.
// README.md tells the story.
package main

import (
	"flag"
	"runtime"
	"syscall"

	"github.com/chert-http/chert/lab/serve"
	"github.com/chert-http/chert/lab/stages/socket"
)

var threads = flag.Int("threads", 64, "how many connections are served at the same time")

func main() { serve.Main(run) }

func run(addr string) error {
	listener, err := socket.Listen(addr, false)
	if err != nil {
		return err
	}
	// Each thread has all it needs to run Go code, so none waits for another of the pool but for a processor: the threads
	// are then what they would be in C.
	runtime.GOMAXPROCS(*threads + 1)
	failed := make(chan error)
	for range *threads {
		go func() {
			runtime.LockOSThread()
			failed <- worker(listener)
		}()
	}
	return <-failed
}

// worker accepts by itself: the kernel's queue of connections is the pool's queue, and it wakes one thread for each.
func worker(listener int) error {
	buf := make([]byte, socket.MaxHead) // now there must be one for each thread
	for {
		c, _, err := syscall.Accept4(listener, syscall.SOCK_CLOEXEC)
		if err == syscall.EINTR || err == syscall.ECONNABORTED {
			continue
		}
		if err != nil {
			return err
		}
		serveOne(c, buf)
		syscall.Close(c)
	}
}

// patience is how long a client may be silent. It holds up a thread of the pool, and that many such clients all of it.
var patience = syscall.Timeval{Sec: 2}

// serveOne reads a request and answers it, as in the first stage. To keep the connection for more requests would not do:
// sixty-four clients that keep theirs would have the server to themselves.
func serveOne(c int, buf []byte) {
	if syscall.SetsockoptTimeval(c, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &patience) != nil {
		return
	}
	answer := socket.Closing
	for n := 0; ; {
		if n == len(buf) {
			answer = socket.Refused
			break
		}
		k, err := syscall.Read(c, buf[n:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || k == 0 {
			return
		}
		n += k
		if size, _ := socket.Request(buf[:n]); size > 0 {
			break
		}
	}
	for sent := 0; sent < len(answer); {
		k, err := syscall.Write(c, []byte(answer[sent:]))
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return
		}
		sent += k
	}
}
