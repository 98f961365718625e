// Command million is one end of very many connections: a server of chert's, or its clients. It does what lines on its
// standard input ask for, answers each with a line of JSON, and ends with its input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"

	"github.com/chert-http/chert/lab/million/wire"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: million server|clients ADDRESS")
	}
	var answer func(ask string) (any, error)
	switch addr := os.Args[2]; os.Args[1] {
	case "server":
		answer = newServer(addr)
	case "clients":
		answer = newClients(addr)
	}
	out := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		v, err := answer(lines.Text())
		if err != nil {
			v = wire.Failed{Error: err.Error()}
		}
		out.Encode(v)
	}
}

// cpu is the processor's time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func newServer(addr string) func(string) (any, error) {
	news, err := eventstream.NewTopic(nil)
	if err != nil {
		log.Fatal(err)
	}
	feed, err := eventstream.New(&eventstream.Options{Heartbeat: -1, MaxStreams: -1,
		OnOpen: func(s *eventstream.Stream, r *http.Request) { news.Join(s) }})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/events", feed)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "Hello, World!") })
	s := &chert.Server{Addr: addr, Handler: mux, MaxConns: -1, IdleTimeout: -1}
	go func() {
		if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}()
	return func(ask string) (any, error) {
		switch ask {
		case "collect":
			began, used := time.Now(), cpu()
			runtime.GC()
			r := wire.Server{Collection: time.Since(began), CollectionCPU: cpu() - used}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			var gc debug.GCStats
			debug.ReadGCStats(&gc)
			r.Heap, r.Objects, r.Pause = m.HeapAlloc, m.HeapObjects, gc.Pause[0]
			now(&r, s)
			return r, nil
		case "publish":
			_, err := news.Publish(eventstream.Event{Data: "hello"})
			return wire.Server{}, err
		case "shutdown":
			began, used := time.Now(), cpu()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			n := s.Stats().Connections.Open
			err := s.Shutdown(ctx)
			return wire.Server{Open: n, Took: time.Since(began), CPU: cpu() - used}, err
		}
		r := wire.Server{}
		now(&r, s)
		return r, nil
	}
}

// now sets what is true now.
func now(r *wire.Server, s *chert.Server) {
	r.Open, r.CPU = s.Stats().Connections.Open, cpu()
}

const (
	get    = "GET / HTTP/1.1\r\nHost: chert.test\r\n\r\n"
	listen = "GET /events HTTP/1.1\r\nHost: chert.test\r\nAccept: text/event-stream\r\n\r\n"
)

// clients are plain sockets: the runtime's poller would take memory for each.
type clients struct {
	to            syscall.SockaddrInet4
	streams, idle []int
	buf           [4096]byte
}

func newClients(addr string) func(string) (any, error) {
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		log.Fatal(err)
	}
	c := &clients{to: syscall.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())}}
	return c.answer
}

func (c *clients) answer(ask string) (any, error) {
	var n int
	switch {
	case scan(ask, "open %d", &n):
		began := time.Now()
		err := c.open(n)
		r := wire.Clients{Open: len(c.streams) + len(c.idle), Streams: len(c.streams), Took: time.Since(began)}
		if err != nil {
			r.Limit = err.Error()
		}
		return r, nil
	case ask == "events":
		began := time.Now()
		for i, fd := range c.streams {
			if n, err := syscall.Read(fd, c.buf[:]); n <= 0 || err != nil {
				return nil, fmt.Errorf("stream %d: %d bytes, %v", i, n, err)
			}
		}
		return wire.Clients{Streams: len(c.streams), Took: time.Since(began)}, nil
	case scan(ask, "ask %d", &n):
		// On one idle connection, one after the other.
		r := wire.Clients{}
		fd := c.idle[0]
		for range n {
			began := time.Now()
			if err := c.exchange(fd, get); err != nil {
				return nil, err
			}
			r.Latencies = append(r.Latencies, time.Since(began))
		}
		return r, nil
	}
	return nil, fmt.Errorf("no request %q", ask)
}

func scan(ask, format string, n *int) bool {
	got, err := fmt.Sscanf(ask, format, n)
	return got == 1 && err == nil
}

// open opens n more connections, every second of which becomes an event stream.
func (c *clients) open(n int) error {
	for i := range n {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("socket: %w", err)
		}
		// From the server's own address: from 127.0.0.1, as the kernel would choose, they would take the ports
		// that other programs of the machine listen on. The port is chosen by connect, which knows the destination.
		const bindAddressNoPort = 24
		syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, bindAddressNoPort, 1)
		if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: c.to.Addr}); err != nil {
			return fmt.Errorf("bind: %w", err)
		}
		if err := syscall.Connect(fd, &c.to); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		// No TIME_WAIT at the end; and an end to waiting.
		syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
		syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 30})
		request := get
		if i%2 == 0 {
			request = listen
		}
		if err := c.exchange(fd, request); err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		if i%2 == 0 {
			c.streams = append(c.streams, fd)
		} else {
			c.idle = append(c.idle, fd)
		}
	}
	return nil
}

func (c *clients) exchange(fd int, request string) error {
	if _, err := syscall.Write(fd, []byte(request)); err != nil {
		return err
	}
	n, err := syscall.Read(fd, c.buf[:])
	if err == nil && (n <= 0 || !strings.HasPrefix(string(c.buf[:n]), "HTTP/1.1 200")) {
		err = fmt.Errorf("received %q", c.buf[:max(n, 0)])
	}
	return err
}
