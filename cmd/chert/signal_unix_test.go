//go:build unix

package main

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// A hangup stops the server if it comes from the end of its terminal, and otherwise is a request to reload.
func TestHangups(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		ticks  int // without the terminal
		back   bool
		missed int // at the start
		gone   bool
		stops  bool
	}{
		{name: "a terminal"},
		{name: "its end", gone: true, stops: true},
		{name: "just after it", ticks: longGone - 1, gone: true, stops: true},
		{name: "a terminal that was missed", ticks: longGone - 1, back: true, gone: true, stops: true},
		{name: "long after it", ticks: longGone, gone: true},
		{name: "none", missed: longGone, gone: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in, stop, reload := make(chan os.Signal), make(chan os.Signal, 1), make(chan os.Signal, 1)
			end, ticks := make(chan struct{}), make(chan time.Time)
			answers := make(chan bool, 10)
			h := &hangup{in: in, stop: stop, reload: reload, end: end, missed: tt.missed, gone: func() bool { return <-answers }}
			ended := make(chan struct{})
			go func() {
				h.pass(&time.Ticker{C: ticks})
				close(ended)
			}()
			for range tt.ticks {
				answers <- true
				ticks <- time.Time{}
			}
			if tt.back {
				answers <- false
				ticks <- time.Time{}
			}
			answers <- tt.gone
			in <- syscall.SIGHUP
			select {
			case <-stop:
				if !tt.stops {
					t.Error("it stops the server")
				}
			case <-reload:
				if tt.stops {
					t.Error("it does not stop the server")
				}
			}
			close(end)
			<-ended
		})
	}
}
