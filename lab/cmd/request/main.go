// Command request serves requests of one path of package request to clients in its own process, over sockets, and
// writes how often each part of chert has run meanwhile. Package crossed builds it with -cover and runs it.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/coverage"
	"strings"

	"github.com/chert-http/chert/lab/request"
)

// settled is after how many requests of each client handlers run on the loop, and what is made once has been made.
const settled = 50

func main() {
	var path, folder string
	var connections, n int
	if _, err := fmt.Sscan(strings.Join(os.Args[1:], " "), &path, &connections, &n, &folder); err != nil {
		fatal(errors.New("usage: request PATH CONNECTIONS N FOLDER"))
	}
	p, ok := request.Find(path)
	if !ok {
		fatal(fmt.Errorf("no path %q", path))
	}
	runtime.GOMAXPROCS(1) // one loop, which has the requests of all clients when it gets the processor
	if err := serve(p, connections, n, folder); err != nil {
		fatal(err)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "request:", err)
	os.Exit(1)
}

// serve serves n requests of each client.
func serve(p request.Path, connections, n int, folder string) error {
	s := p.Server()
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer s.Close()
	go s.Serve(l)
	var all clients
	for range connections {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return err
		}
		defer nc.Close()
		c := &client{Client: p.Client(), nc: nc}
		all = append(all, c)
		send, end := c.Open()
		if send == nil {
			continue
		}
		if _, err := nc.Write(send); err != nil {
			return err
		}
		if err := c.receive(end); err != nil {
			return err
		}
	}
	if err := all.request(settled); err != nil {
		return err
	}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if err := all.request(n); err != nil {
		return err
	}
	if err := coverage.WriteMetaDir(folder); err != nil {
		return err
	}
	return coverage.WriteCountersDir(folder)
}

type clients []*client

// request has each client send n requests, all of them one before any receives the response to it.
func (all clients) request(n int) error {
	for range n {
		for _, c := range all {
			if _, err := c.nc.Write(c.Next()); err != nil {
				return err
			}
		}
		for _, c := range all {
			if err := c.receive([]byte(request.Hello)); err != nil {
				return err
			}
		}
	}
	return nil
}

type client struct {
	*request.Client
	nc net.Conn
	in [4 << 10]byte
}

// receive receives what ends with end.
func (c *client) receive(end []byte) error {
	for n := 0; !bytes.HasSuffix(c.in[:n], end); {
		k, err := c.nc.Read(c.in[n:])
		if err != nil {
			return fmt.Errorf("after %q: %w", c.in[:n], err)
		}
		if n += k; n == len(c.in) {
			return io.ErrShortBuffer
		}
	}
	return nil
}
