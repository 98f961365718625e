// Command server is one small loop on epoll or on io_uring, with several ways to wait: what a ring is worth, and what the
// way of waiting is worth. It answers every request with "Hello, World!".
package main

import (
	"flag"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/chert-http/chert/lab/serve"
	"github.com/chert-http/chert/lab/stages/socket"
)

var (
	io   = flag.String("io", "epoll", "epoll; ring: COOP_TASKRUN and no thread of its own; defer: SINGLE_ISSUER and DEFER_TASKRUN; single: as defer, but a submission for each receive")
	held = flag.Bool("held", false, "keep the processor while waiting, for a millisecond at most")
)

func main() { serve.Main(run) }

func run(addr string) error {
	listener, err := socket.Listen(addr, false)
	if err != nil {
		return err
	}
	switch *io {
	case "epoll":
		return onEpoll(listener)
	case "ring", "defer", "single":
		return onRing(listener)
	}
	return fmt.Errorf("no way %q", *io)
}

// conn is a connection, of either loop.
type conn struct {
	fd      int
	in      []byte // the beginning of a request
	out     []byte // answers that were not sent yet
	closing bool
	// Of the ring only:
	sending, ended bool   // a send is under way; nothing more will be received
	flying, spare  []byte // what that sends, and memory for the next
}

// take appends answers for what was received to out.
func (c *conn) take(received []byte) {
	in := received
	if len(c.in) > 0 {
		in = append(c.in, received...)
	}
	for !c.closing {
		size, closes := socket.Request(in)
		if size == 0 {
			break
		}
		in = in[size:]
		if closes {
			c.closing = true
			c.out = append(c.out, socket.Closing...)
		} else {
			c.out = append(c.out, socket.Kept...)
		}
	}
	if len(in) >= socket.MaxHead {
		c.closing, c.out = true, append(c.out, socket.Refused...)
	}
	c.in = append(c.in[:0], in...)
}

// ticker returns a descriptor that becomes readable each millisecond: it bounds a held wait, and is armed once, since
// arming costs as much as what is saved.
func ticker() (int, error) {
	const monotonic, nonblock = 1, syscall.O_NONBLOCK | syscall.O_CLOEXEC
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, monotonic, nonblock, 0)
	if errno != 0 {
		return -1, errno
	}
	every := syscall.NsecToTimespec(1e6)
	spec := [2]syscall.Timespec{every, every}
	if _, _, errno = syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0); errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// ticked reads a ticker, and lets other goroutines run.
func ticked(fd int) {
	var count [8]byte
	syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&count)), 8)
	runtime.Gosched()
}
