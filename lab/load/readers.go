package load

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/lab/exchange"
)

// Readers downloads one file again and again as fast as it comes, first alone, then beside many that read another, very
// large one slowly.
type Readers struct {
	Addr        string
	Fast, Slow  string // paths; no client reaches the end of the slow one
	Connections int    // of the fast ones; each sends a request when its last response is complete
	Slows       int    // slow readers, each with a connection
	Rate        int    // bytes a second that each of them reads
	Seconds     float64
}

// ReadersResult is what came of it.
type ReadersResult struct {
	Alone  Timings // fast, first half
	Beside Timings // fast, second half
	// SlowBytes is what the slow ones read in the second half. Wanted is what they would have, had it always been there.
	SlowBytes, Wanted int64
	Errors            int64  // connections that failed
	Fault             string // the first error
	// CPU is the processor time of the client program; Child sets it.
	CPU time.Duration `json:"-"`
}

// Run does it in this process.
func (r Readers) Run(ctx context.Context) (ReadersResult, error) {
	var res ReadersResult
	fast, err := openFlow(ctx, r.Addr, r.Fast, r.Connections)
	if err != nil {
		return res, err
	}
	defer fast.close()
	half := time.Duration(r.Seconds * float64(time.Second))
	res.Alone = <-fast.start(ctx, 0, half)

	crowd, err := gather(ctx, r)
	if err != nil {
		return res, err
	}
	select { // until what the server could send ahead is sent
	case <-ctx.Done():
	case <-time.After(settling):
	}
	before, begin := crowd.read.Load(), time.Now()
	res.Beside = <-fast.start(ctx, 0, half)
	res.SlowBytes = crowd.read.Load() - before
	res.Wanted = int64(float64(r.Slows*r.Rate) * time.Since(begin).Seconds())
	failed := append(crowd.disperse(), fast.failed...)
	for _, err := range failed {
		if err != nil {
			res.Errors++
			res.Fault = err.Error()
		}
	}
	return res, ctx.Err()
}

// Child does it in a process on a core of its own. binary is the path of the program built in PaceFolder.
func (r Readers) Child(ctx context.Context, binary string, core int) (ReadersResult, error) {
	var res ReadersResult
	used, err := inChild(ctx, binary, core, "readers", r, &res)
	res.CPU = used
	return res, err
}

// crowd is the slow readers. Each is a goroutine that waits most of the time.
type crowd struct {
	conns  []net.Conn
	read   atomic.Int64 // bytes, of all
	failed []error      // of each; to be read when all have ended
	ended  sync.WaitGroup
	stop   context.CancelFunc
}

// settling is how long the slow ones read before they are measured.
const settling = time.Second

// bites is how many times a second a slow reader reads.
const bites = 4

// gather opens the connections, and returns when every slow reader has had its first bite.
func gather(ctx context.Context, r Readers) (*crowd, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &crowd{conns: make([]net.Conn, r.Slows), failed: make([]error, r.Slows), stop: cancel}
	readers := make([]*bufio.Reader, r.Slows)
	request := exchange.Get(r.Slow).Text(r.Addr)
	err := each(ctx, r.Slows, func(k int, _ *bufio.Reader) error {
		dialer := net.Dialer{Timeout: 5 * time.Second, Control: asFromAfar}
		var err error
		if c.conns[k], err = dialer.DialContext(ctx, "tcp", r.Addr); err != nil {
			return err
		}
		readers[k] = bufio.NewReader(c.conns[k])
		return c.begin(k, readers[k], request, r.Rate/bites)
	})
	if err != nil {
		c.disperse()
		return nil, err
	}
	for k := range c.conns {
		phase := time.Second / bites * time.Duration(k) / time.Duration(r.Slows)
		c.ended.Go(func() { c.failed[k] = c.keepReading(ctx, k, readers[k], phase, r.Rate/bites) })
	}
	return c, nil
}

// begin sends the request, and reads the head and the first bytes.
func (c *crowd) begin(k int, from *bufio.Reader, request string, bite int) error {
	c.conns[k].SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c.conns[k], request); err != nil {
		return err
	}
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return c.bite(k, from, bite)
}

// bite reads a piece of the body. What is due must come within some seconds.
func (c *crowd) bite(k int, from *bufio.Reader, size int) error {
	c.conns[k].SetDeadline(time.Now().Add(10 * time.Second))
	n, err := io.CopyN(io.Discard, from, int64(size))
	c.read.Add(n)
	return err
}

// keepReading reads a bite when one is due, until ctx ends. What was due while the last one did not come is left out.
func (c *crowd) keepReading(ctx context.Context, k int, from *bufio.Reader, phase time.Duration, size int) error {
	due := time.Now().Add(phase)
	timer := time.NewTimer(phase)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := c.bite(k, from, size); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		for now := time.Now(); !due.After(now); {
			due = due.Add(time.Second / bites)
		}
		timer.Reset(time.Until(due))
	}
}

// disperse ends the readers and returns why each failed, if it did.
func (c *crowd) disperse() []error {
	c.stop() // first: what fails from now on is no failure
	for _, conn := range c.conns {
		if conn != nil {
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	}
	c.ended.Wait()
	return c.failed
}
