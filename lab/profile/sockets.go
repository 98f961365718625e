package profile

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/work"
)

// messageSize is that of the messages that are echoed.
const messageSize = 64

// socketServer is chert with its package websocket.
const socketServer = "chertws"

// socketScenes are echoes over WebSockets. A request is one message, and its answer the echo.
func socketScenes() []scene {
	all := []scene{
		{name: "wsecho", about: "WebSockets: echo of 64 bytes, one message under way on each of 64 connections", burst: 1,
			title: "%d WebSockets that echo 64 bytes, one message under way on each"},
		{name: "wsburst", about: "WebSockets: the same with 16 messages in each write", burst: 16,
			title: "%d WebSockets that echo 64 bytes, 16 messages in each write"},
	}
	for i := range all {
		s := &all[i]
		s.server, s.connections, s.rivals, s.needs = socketServer, "64", everyone, rival.Sockets
		s.request, s.want = exchange.Get("/"), exchange.OK("text/plain", work.Hello) // whether the server is there
	}
	return all
}

// runSocketsIdle is idle with WebSockets.
func runSocketsIdle(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: rival.Sockets, server: socketServer}
	f := flag.NewFlagSet("wsidle", flag.ContinueOnError)
	c.register(f, everyone)
	connections := f.Int("connections", 10000, "how many to hold")
	secure := f.Bool("tls", false, "with TLS")
	heap := f.String("heap", "", "also write a profile of each server's heap to this `file`, with the server's name after it")
	if err := parse(f, args); err != nil {
		return err
	}
	if *connections < 1 {
		return fmt.Errorf("%d connections: may not be less than 1", *connections)
	}
	return c.hold(ctx, *connections, "WebSockets after one echo on each", Holding{Open: OpenBy(load.OpenEchoes), TLS: *secure, Heap: *heap}, out, log)
}

func runSocketsBroadcast(ctx context.Context, args []string, out, log io.Writer) error {
	b := broadcast{what: "message", apart: true, open: func(ctx context.Context, addr string, n int) (receivers, error) {
		return load.OpenRoom(ctx, addr, n)
	}}
	b.needs, b.server = rival.Sockets, socketServer
	f := flag.NewFlagSet("wsbroadcast", flag.ContinueOnError)
	b.register(f, everyone)
	f.IntVar(&b.count, "messages", 20, "how many messages are published in a turn")
	return b.run(ctx, f, args, out, log)
}
