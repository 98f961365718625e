// Command 1 is the first stage: one thread that accepts a connection, reads a request, answers it, closes, and only then
// turns to the next. README.md tells the story.
package main

import (
	"log"
	"syscall"

	"github.com/chert-http/chert/lab/serve"
	"github.com/chert-http/chert/lab/stages/socket"
)

func main() { serve.Main(run) }

func run(addr string) error {
	listener, err := socket.Listen(addr, false)
	if err != nil {
		return err
	}
	buf := make([]byte, socket.MaxHead)
	for {
		// Sleeps until a connection is there.
		c, _, err := syscall.Accept4(listener, syscall.SOCK_CLOEXEC)
		if err == syscall.EINTR || err == syscall.ECONNABORTED {
			continue // a signal, or the client has left before its turn
		}
		if err != nil {
			return err
		}
		if err := serveOne(c, buf); err != nil {
			log.Print(err)
		}
		syscall.Close(c)
	}
}

// patience is how long a client may be silent: all the others wait for it.
var patience = syscall.Timeval{Sec: 2}

// serveOne reads a request and answers it. buf is for the request; it is the same for all connections, since there is
// never more than one.
func serveOne(c int, buf []byte) error {
	if err := syscall.SetsockoptTimeval(c, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &patience); err != nil {
		return err
	}
	answer := socket.Closing
	for n := 0; ; {
		if n == len(buf) {
			answer = socket.Refused
			break
		}
		// Sleeps until the client has sent something.
		k, err := syscall.Read(c, buf[n:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || k == 0 {
			return nil // the client has left, or says nothing: no fault of ours
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
			return nil // the client has left
		}
		sent += k
	}
	return nil
}
