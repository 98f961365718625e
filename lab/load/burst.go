package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/lab/exchange"
)

// Burst is a number of requests over a number of connections, each sent when the last answer on its connection was
// complete, as hey -n -c does.
type Burst struct {
	Addr     string
	Path     string
	Requests int
	Clients  int
	TLS      bool // no certificate is verified
	Close    bool // a connection for each request
}

// BurstResult is what came of it.
type BurstResult struct {
	PerSecond           float64
	Mean, P50, P95, P99 time.Duration
	Statuses            map[int]int
	Errors              int // requests without an answer
	Fault               string
	// CPU is the processor time of the client program; Child sets it.
	CPU time.Duration `json:"-"`
}

// Child does it in a process on a core of its own. binary is the path of the program built in PaceFolder.
func (b Burst) Child(ctx context.Context, binary string, core int) (BurstResult, error) {
	var res BurstResult
	used, err := inChild(ctx, binary, core, "burst", b, &res)
	res.CPU = used
	return res, err
}

// Run does it in this process.
func (b Burst) Run(ctx context.Context) (BurstResult, error) {
	if b.Clients < 1 || b.Requests < b.Clients {
		return BurstResult{}, fmt.Errorf("%d requests over %d connections", b.Requests, b.Clients)
	}
	request := exchange.Get(b.Path)
	request.Close = b.Close
	text := request.Text(b.Addr)
	var left atomic.Int64
	left.Store(int64(b.Requests))
	clients := make([]client, b.Clients)
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range clients {
		clients[i].statuses = map[int]int{}
		wg.Go(func() {
			clients[i].run(ctx, b, text, &left)
		})
	}
	wg.Wait()
	return sum(clients, time.Since(begin)), ctx.Err()
}

// client is one of a Burst's connections, or several one after the other.
type client struct {
	took     []time.Duration
	statuses map[int]int
	errors   int
	fault    error
}

func (c *client) run(ctx context.Context, b Burst, text string, left *atomic.Int64) {
	var conn net.Conn
	r := bufio.NewReader(nil)
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	for left.Add(-1) >= 0 && ctx.Err() == nil {
		begin := time.Now()
		status, closes, err := 0, false, error(nil)
		if conn == nil {
			conn, err = b.dial(ctx)
			r.Reset(conn)
		}
		if err == nil {
			status, closes, err = exchanged(conn, r, text)
		}
		if err != nil {
			c.errors++
			c.fault = err
		} else {
			c.took = append(c.took, time.Since(begin))
			c.statuses[status]++
		}
		if conn != nil && (err != nil || closes) {
			conn.Close()
			conn = nil
		}
	}
}

func (b Burst) dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	if !b.TLS {
		return dialer.DialContext(ctx, "tcp", b.Addr)
	}
	secure := tls.Dialer{NetDialer: &dialer, Config: &tls.Config{InsecureSkipVerify: true}}
	return secure.DialContext(ctx, "tcp", b.Addr)
}

// exchanged sends a request and reads the answer, whatever it says.
func exchanged(c net.Conn, r *bufio.Reader, text string) (status int, closes bool, err error) {
	c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		return 0, false, err
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return 0, false, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, false, err
	}
	return resp.StatusCode, resp.Close, nil
}

func sum(clients []client, took time.Duration) BurstResult {
	res := BurstResult{Statuses: map[int]int{}}
	var all []time.Duration
	var total time.Duration
	for _, c := range clients {
		all = append(all, c.took...)
		res.Errors += c.errors
		if c.fault != nil {
			res.Fault = c.fault.Error()
		}
		for status, n := range c.statuses {
			res.Statuses[status] += n
		}
	}
	if len(all) == 0 {
		return res
	}
	slices.Sort(all)
	for _, d := range all {
		total += d
	}
	at := func(percent int) time.Duration { return all[(len(all)-1)*percent/100] }
	res.PerSecond = float64(len(all)) / took.Seconds()
	res.Mean, res.P50, res.P95, res.P99 = total/time.Duration(len(all)), at(50), at(95), at(99)
	return res
}
