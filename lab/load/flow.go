package load

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/chert-http/chert/lab/exchange"
)

// Timings is what the clients of a flow saw: the time from sending a request to the end of its answer.
type Timings struct {
	Requests      int64   // answered
	PerSecond     float64 // of those answered before the time was up
	P50, P99, Max time.Duration
}

// flow is a set of connections, or of streams, that ask for the same.
type flow struct {
	conns  []net.Conn // none of streams
	asks   []func() error
	failed []error       // for each of asks, why it was given up
	spread time.Duration // over which requests without a pace begin
}

func openFlow(ctx context.Context, addr, path string, n int) (*flow, error) {
	f := &flow{failed: make([]error, n)}
	request := exchange.Get(path).Text(addr)
	for range n {
		dialer := net.Dialer{Timeout: 5 * time.Second}
		c, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			f.close()
			return nil, err
		}
		f.conns = append(f.conns, c)
		r := bufio.NewReaderSize(c, 64<<10) // the answer may be a megabyte
		f.asks = append(f.asks, func() error { return ask(c, r, request) })
	}
	return f, nil
}

// streamFlow is one of n streams at a time of a connection that t has.
func streamFlow(ctx context.Context, t *http.Transport, addr, path string, n int) *flow {
	f := &flow{failed: make([]error, n)}
	for range n {
		f.asks = append(f.asks, func() error { return askH2(ctx, t, "https://"+addr+path) })
	}
	return f
}

func (f *flow) close() {
	for _, c := range f.conns {
		c.Close()
	}
}

// start sends requests on all connections for some time and then returns how long the responses took. perSecond is
// spread evenly over the connections and over time; 0 sends the next request when the last was answered, and the first
// ones spread over f.spread.
func (f *flow) start(ctx context.Context, perSecond float64, during time.Duration) chan Timings {
	result := make(chan Timings, 1)
	begin := time.Now()
	end := begin.Add(during)
	took := make([][]time.Duration, len(f.asks))
	inTime := make([]int, len(f.asks))
	var wg sync.WaitGroup
	for k := range f.asks {
		var period time.Duration
		over := f.spread
		if perSecond > 0 {
			period = time.Duration(float64(len(f.asks)) / perSecond * float64(time.Second))
			over = period
		}
		phase := over * time.Duration(k) / time.Duration(len(f.asks))
		wg.Go(func() { took[k], inTime[k] = f.keepAsking(ctx, k, begin.Add(phase), end, period) })
	}
	go func() {
		wg.Wait()
		t := summarise(slices.Concat(took...))
		for _, n := range inTime {
			t.PerSecond += float64(n) / during.Seconds()
		}
		result <- t
	}()
	return result
}

// keepAsking sends requests on one connection, at due and then every period. Requests that were due while a response
// was outstanding are omitted: the measured rate then falls below the nominal one. inTime counts the responses before
// the end.
func (f *flow) keepAsking(ctx context.Context, k int, due, end time.Time, period time.Duration) (took []time.Duration, inTime int) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil && f.failed[k] == nil {
		now := time.Now()
		if period > 0 {
			for due.Before(now) {
				due = due.Add(period)
			}
		} else if due.Before(now) {
			due = now
		}
		if !due.Before(end) {
			break
		}
		timer.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return took, inTime
		case <-timer.C:
		}
		// The timer may be late by a millisecond, which is not the server's doing: latency counts from here.
		sent := time.Now()
		if f.failed[k] = f.asks[k](); f.failed[k] == nil {
			took = append(took, time.Since(sent))
			if sent.Add(took[len(took)-1]).Before(end) {
				inTime++
			}
		}
	}
	return took, inTime
}

func summarise(took []time.Duration) Timings {
	if len(took) == 0 {
		return Timings{}
	}
	slices.Sort(took)
	at := func(percent int) time.Duration { return took[(len(took)-1)*percent/100] }
	return Timings{
		Requests: int64(len(took)),
		P50:      at(50),
		P99:      at(99),
		Max:      took[len(took)-1],
	}
}
