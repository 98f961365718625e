package main

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// The second signal is a different one, or comes later than the duplicates of the first.
func TestStops(t *testing.T) {
	t.Parallel()
	type arrival struct {
		sig   os.Signal
		after time.Duration
	}
	const term, interrupt = syscall.SIGTERM, syscall.SIGINT
	for name, tt := range map[string]struct {
		in     []arrival
		passed []os.Signal
	}{
		"one":          {[]arrival{{term, 0}}, []os.Signal{term}},
		"duplicates":   {[]arrival{{term, 0}, {term, 0}, {term, sameSignal - 1}}, []os.Signal{term}},
		"later":        {[]arrival{{term, 0}, {term, 0}, {term, sameSignal}}, []os.Signal{term, term}},
		"another kind": {[]arrival{{term, 0}, {interrupt, 0}}, []os.Signal{term, interrupt}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, out, end, ended := make(chan os.Signal), make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
			times := make(chan time.Time, 1)
			exits := 0
			go func() {
				passStops(in, out, end, func() time.Time { return <-times }, func() { exits++ })
				close(ended)
			}()
			begin := time.Now()
			for _, a := range tt.in {
				times <- begin.Add(a.after)
				in <- a.sig
			}
			close(end)
			<-ended
			close(out)
			var got []os.Signal
			for sig := range out {
				got = append(got, sig)
			}
			if !slices.Equal(got, tt.passed) || exits != len(tt.passed)-1 {
				t.Errorf("%v were passed, and the process was told to exit %d times", got, exits)
			}
		})
	}
}
