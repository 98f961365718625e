package sys

import (
	"sync"
	"time"
)

// A Relay moves bytes from one socket to another through a pipe, by splice(2),
// without a copy to user space. The zero value is ready; Close must follow.
// It is not safe for concurrent use.
//
// Take and Give alternate: everything that one Take has moved is given before
// the next, so that the pipe is empty when Take returns EAGAIN, which thus
// means that the socket has nothing. A relay has a pipe only while it holds
// bytes or its source supplies some: while it waits for its source it costs no
// descriptor.
type Relay struct {
	pipe   pipe
	has    bool // pipe is valid
	held   int  // bytes in pipe
	joined bool // counted in pipes.relays
}

// pipeSize is the requested capacity of a pipe. The kernel counts segments, one
// for each 4 KiB of this: a stream that arrives in packets of 1.4 KiB fills it
// with a third as many bytes. A quarter of it makes bodies of that size cost
// four times as much (BenchmarkProxyStream).
const pipeSize = 1 << 20

// idlePipes is how many empty pipes are kept for the next Take, and pipesIdle
// how long if there is no relay left that could use one.
const (
	idlePipes = 16
	pipesIdle = time.Second
)

// maxPipes bounds the pipes that are open at once. Pipes that stay full belong
// to clients that read slowly, for which copying works as well. 32 are half of
// what Linux allows a user before it makes the user's pipes small
// (pipe-user-pages-soft, pipe(7)), including those of other programs.
var maxPipes = sync.OnceValue(func() int { return min(MaxFiles()/64, 32) })

// pipes is shared by all relays.
var pipes struct {
	mu       sync.Mutex
	relays   int // that have had a pipe and are not closed
	open     int // with idle
	idle     []pipe
	sweeping bool // a sweep is scheduled
}

// Held returns how many bytes have been taken and not given.
func (r *Relay) Held() int { return r.held }

// Take moves up to n bytes out of the socket src. n == 0 with e == 0 is the end
// of the stream, NoPipe means that no pipe is available now. It must not be
// called while bytes are held.
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

// Give moves as many of the held bytes as dst accepts. It must not be called
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
// relay to close schedules another sweep.
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

// open ensures that there is a pipe.
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

// drop gives up the pipe: to another relay if it is clean, that is empty.
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

// Pipes returns how many pipes are in use and how many are idle, for tests.
func Pipes() (used, idle int) {
	pipes.mu.Lock()
	defer pipes.mu.Unlock()
	return pipes.open - len(pipes.idle), len(pipes.idle)
}
