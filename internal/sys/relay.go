package sys

import (
	"sync"
	"time"
)

// A Relay moves bytes from one socket to another through a pipe, by splice(2),
// without a copy to user space. The zero value is ready; Close must follow.
// It is for one goroutine at a time.
//
// Take and Give alternate: what one Take has moved is given whole before the
// next, so that the pipe is empty when Take says EAGAIN and it is the socket
// that has nothing. A relay has a pipe only while it holds bytes or its source
// gives some: while it waits for its source it costs no descriptor.
type Relay struct {
	pipe   pipe
	has    bool // pipe is one
	held   int  // bytes in pipe
	joined bool // counted in pipes.relays
}

// pipeSize is what the kernel is asked to let a pipe hold. What it counts are
// segments, one for each 4 KiB of this: a stream that arrives in packets of
// 1.4 KiB fills it with a third as many bytes. A quarter of it makes bodies of
// that size cost four times as much (BenchmarkProxyStream).
const pipeSize = 1 << 20

// idlePipes is how many empty pipes are kept for the next Take, and pipesIdle
// how long when no relay is left that could want one.
const (
	idlePipes = 16
	pipesIdle = time.Second
)

// maxPipes bounds the pipes that are open at once. Those that stay full belong
// to clients that take their bytes slowly, which copying serves as well. 32 are
// half of what Linux lets a user have before it makes his pipes small
// (pipe-user-pages-soft, pipe(7)), those of his other programs too.
var maxPipes = sync.OnceValue(func() int { return min(MaxFiles()/64, 32) })

// pipes is shared by all relays.
var pipes struct {
	mu       sync.Mutex
	relays   int // that have had a pipe and are not closed
	open     int // with idle
	idle     []pipe
	sweeping bool // a sweep will come
}

// Held is how many bytes have been taken and not given.
func (r *Relay) Held() int { return r.held }

// Take moves up to n bytes out of the socket src. n == 0 with e == 0 is the end
// of the stream, NoPipe says that there is no pipe to be had now. It must not
// be called while bytes are held.
func (r *Relay) Take(src, n int) (int, Errno) {
	if !r.open() {
		return 0, NoPipe
	}
	n, e := r.pipe.take(src, n)
	if e != 0 || n == 0 {
		r.drop(true)
		return 0, e
	}
	r.held = n
	return n, 0
}

// Give moves what dst takes of the bytes that are held. It must not be called
// when there are none.
func (r *Relay) Give(dst int) (int, Errno) {
	n, e := r.pipe.give(dst, r.held)
	r.held -= n
	return n, e
}

// Close releases the pipe. Bytes that are held are lost.
func (r *Relay) Close() {
	r.drop(r.held == 0)
	r.held = 0
	if !r.joined {
		return
	}
	r.joined = false
	pipes.mu.Lock()
	defer pipes.mu.Unlock()
	if pipes.relays--; pipes.relays == 0 && len(pipes.idle) > 0 && !pipes.sweeping {
		pipes.sweeping = true
		time.AfterFunc(pipesIdle, sweepPipes)
	}
}

// sweepPipes closes the idle pipes, unless there is a relay again; the last
// one to close calls for another sweep.
func sweepPipes() {
	pipes.mu.Lock()
	defer pipes.mu.Unlock()
	pipes.sweeping = false
	if pipes.relays > 0 {
		return
	}
	for _, p := range pipes.idle {
		p.close()
	}
	pipes.open -= len(pipes.idle)
	pipes.idle = nil
}

// open sees to it that there is a pipe.
func (r *Relay) open() bool {
	if r.has {
		return true
	}
	pipes.mu.Lock()
	defer pipes.mu.Unlock()
	if !r.joined {
		r.joined = true
		pipes.relays++
	}
	if last := len(pipes.idle) - 1; last >= 0 {
		r.pipe, pipes.idle = pipes.idle[last], pipes.idle[:last]
		r.has = true
	} else if pipes.open < maxPipes() {
		if r.pipe, r.has = newPipe(); r.has {
			pipes.open++
		}
	}
	return r.has
}

// drop gives the pipe up: for another relay if it is clean, that is without a
// byte in it.
func (r *Relay) drop(clean bool) {
	if !r.has {
		return
	}
	r.has = false
	pipes.mu.Lock()
	defer pipes.mu.Unlock()
	if clean && len(pipes.idle) < idlePipes {
		pipes.idle = append(pipes.idle, r.pipe)
		return
	}
	r.pipe.close()
	pipes.open--
}

// Pipes is how many pipes are in use and how many wait to be, for tests.
func Pipes() (used, idle int) {
	pipes.mu.Lock()
	defer pipes.mu.Unlock()
	return pipes.open - len(pipes.idle), len(pipes.idle)
}
