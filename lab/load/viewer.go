package load

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Viewers read the event stream of a live page, as browsers that show it do.
type Viewers struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	seen  []Seen
	err   error
	first chan struct{} // closed when all have an event
	none  int           // how many have none
}

// Seen is an event that a viewer has got.
type Seen struct {
	Viewer int
	At     time.Time
	Bytes  int
}

// Watch opens n viewers of the stream at url, and waits until each has its first event.
func Watch(ctx context.Context, url string, n int) (*Viewers, error) {
	ctx, cancel := context.WithCancel(ctx)
	v := &Viewers{cancel: cancel, first: make(chan struct{}), none: n}
	if n == 0 {
		return v, nil
	}
	for i := range n {
		v.wg.Go(func() {
			if err := v.read(ctx, url, i); ctx.Err() == nil {
				v.mu.Lock()
				v.err = errors.Join(v.err, fmt.Errorf("a viewer of %s: %w", url, err))
				v.mu.Unlock()
				cancel()
			}
		})
	}
	select {
	case <-v.first:
		return v, nil
	case <-ctx.Done():
		_, err := v.Close()
		return nil, cmp.Or(err, ctx.Err())
	}
}

// read reads events until the stream ends, which it never does by itself.
func (v *Viewers) read(ctx context.Context, url string, i int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	tr := &http.Transport{} // a connection of its own, and no proxy from the environment
	defer tr.CloseIdleConnections()
	res, err := tr.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	r := bufio.NewReader(res.Body)
	for event, data := 0, false; ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		event += len(line)
		data = data || strings.HasPrefix(line, "data:")
		if line != "\n" {
			continue
		}
		if data { // "retry:" alone is none
			v.got(Seen{i, time.Now(), event})
		}
		event, data = 0, false
	}
}

func (v *Viewers) got(s Seen) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = append(v.seen, s)
	for _, other := range v.seen[:len(v.seen)-1] {
		if other.Viewer == s.Viewer {
			return
		}
	}
	if v.none--; v.none == 0 {
		close(v.first)
	}
}

// Close ends the viewers and returns what they have got, each viewer's events in order.
func (v *Viewers) Close() ([]Seen, error) {
	v.mu.Lock()
	seen, err := v.seen, v.err
	v.mu.Unlock()
	v.cancel()
	v.wg.Wait()
	return seen, err
}
