package profile

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/rival"
)

// runEventsIdle is idle with streams of events.
func runEventsIdle(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: rival.Events, server: "chertevents"}
	f := flag.NewFlagSet("sseidle", flag.ContinueOnError)
	c.register(f, "nethttp")
	connections := f.Int("connections", 10000, "how many streams to hold")
	secure := f.Bool("tls", false, "with TLS")
	heap := f.String("heap", "", "also write a profile of each server's heap to this `file`, with the server's name after it")
	if err := parse(f, args); err != nil {
		return err
	}
	if *connections < 1 {
		return fmt.Errorf("%d connections: may not be less than 1", *connections)
	}
	title := "streams of events on which nothing happens"
	return c.hold(ctx, *connections, title, Holding{Open: load.OpenEvents, TLS: *secure, Heap: *heap, publishes: true}, out, log)
}

func runEventsBroadcast(ctx context.Context, args []string, out, log io.Writer) error {
	b := broadcast{what: "event", open: func(ctx context.Context, addr string, n int) (receivers, error) {
		return load.OpenEvents(ctx, addr, n, nil)
	}}
	b.needs, b.server = rival.Events, "chertevents"
	f := flag.NewFlagSet("ssebroadcast", flag.ContinueOnError)
	b.register(f, "nethttp")
	f.IntVar(&b.count, "events", 20, "how many events are published in a turn")
	return b.run(ctx, f, args, out, log)
}
