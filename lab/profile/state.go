package profile

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

// rest waits until a server has nothing left to do, makes it give back memory, and reads its state. Every reading comes
// over a new connection, which is itself part of the state: the same one, before and after.
func rest(ctx context.Context, s *rival.Server) (report.State, error) {
	if err := settle(ctx, s); err != nil {
		return report.State{}, err
	}
	if _, err := get(ctx, s, "/debug/gc"); err != nil {
		return report.State{}, err
	}
	return state(ctx, s)
}

// state reads a server's state as it is.
func state(ctx context.Context, s *rival.Server) (report.State, error) {
	p, err := Stats(ctx, s)
	if err != nil {
		return report.State{}, err
	}
	return report.State{Resident: p.Resident, HeapInUse: p.HeapInUse, Goroutines: p.Goroutines}, nil
}

// settle returns when the number of goroutines has not changed for a while: connections that were closed are then gone.
func settle(ctx context.Context, s *rival.Server) error {
	const (
		pause = 50 * time.Millisecond
		still = 4   // readings in a row that must be equal
		most  = 200 // readings
	)
	last, equal := -1, 0
	for range most {
		p, err := Stats(ctx, s)
		if err != nil {
			return err
		}
		if p.Goroutines != last {
			last, equal = p.Goroutines, 0
		} else if equal++; equal == still {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return fmt.Errorf("the number of goroutines, last %d, has not come to rest", last)
}

// Stats is what a server says of itself, at /debug/stats.
func Stats(ctx context.Context, s *rival.Server) (measure.Process, error) {
	var p measure.Process
	text, err := get(ctx, s, "/debug/stats")
	if err != nil {
		return p, err
	}
	err = json.Unmarshal(text, &p)
	return p, err
}

func get(ctx context.Context, s *rival.Server, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr+path, nil)
	if err != nil {
		return nil, err
	}
	req.Close = true
	client := http.Client{Transport: &http.Transport{}} // no proxy from the environment
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", path, resp.Status, text)
	}
	return text, nil
}
