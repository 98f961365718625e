package profile

import (
	"context"
	"errors"
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
	h2 := f.Bool("h2", false, "over HTTP/2; without --tls at once, which of the servers only chertevents speaks")
	h3 := f.Bool("h3", false, "over HTTP/3; of chert3events and quicgo")
	streams := f.Int("streams", 1, "with --h2 or --h3: how many streams each connection has, up to 250")
	heap := f.String("heap", "", "also write a profile of each server's heap to this `file`, with the server's name after it")
	if err := parse(f, args); err != nil {
		return err
	}
	if *connections < 1 {
		return fmt.Errorf("%d connections: may not be less than 1", *connections)
	}
	how := Holding{Open: OpenBy(load.OpenEvents), TLS: *secure, Heap: *heap, h2: *h2, publishes: true}
	title := "streams of events on which nothing happens"
	switch {
	case *streams < 1 || *streams > 250 || *streams > 1 && !*h2 && !*h3:
		return errors.New("--streams must be from 1 to 250, and more than 1 needs --h2 or --h3")
	case *h3:
		how.H3, how.TLS = OpenBy(load.OpenEventsH3(*streams)), true
		c.needs |= rival.H3
		if c.servers == "" {
			c.servers = "chert3events,quicgo"
		}
		title = fmt.Sprintf("%s, %d on each connection", title, *streams)
	case *h2:
		how.Open = OpenBy(load.OpenEventsH2(*streams))
		if !*secure {
			c.vs = ""
		}
		title = fmt.Sprintf("%s, %d on each connection", title, *streams)
	}
	return c.hold(ctx, *connections, title, how, out, log)
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
