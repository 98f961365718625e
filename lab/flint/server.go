package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert/lab/work"
)

// server is what is written from scratch.
type server struct {
	limit   int
	mu      sync.Mutex
	buckets map[string]int // what each address has left; none is ever removed
}

func newServer(limit int) *server { return &server{limit: limit, buckets: map[string]int{}} }

// naked starts a goroutine for each connection.
func (s *server) naked(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go s.serve(c)
	}
}

// pool returns the same with a number of workers, which all listeners share. A worker has a connection until it is closed.
// Connections beyond the queue are refused.
func (s *server) pool(workers, queue int) func(net.Listener) error {
	waiting := make(chan net.Conn, queue)
	for range workers {
		go func() {
			for c := range waiting {
				s.serve(c)
			}
		}()
	}
	return func(l net.Listener) error {
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			select {
			case waiting <- c:
			default:
				c.Close()
			}
		}
	}
}

// request is what the parser makes of a head.
type request struct {
	method, path, version string
	headers               map[string]string
}

var errMalformed = errors.New("malformed request")

// parse reads a head line by line.
func parse(r *bufio.Reader) (*request, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	parts := strings.Fields(line)
	if len(parts) != 3 {
		return nil, errMalformed
	}
	req := &request{method: parts[0], path: parts[1], version: parts[2], headers: map[string]string{}}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			return req, nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, errMalformed
		}
		req.headers[strings.ToLower(name)] = strings.TrimSpace(value)
	}
}

func (s *server) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	address, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	for {
		req, err := parse(r)
		if err != nil {
			return
		}
		status, body := "429 Too Many Requests", ""
		if s.allowed(address, req.path) {
			status, body = route(req)
		}
		how := "keep-alive"
		closes := strings.EqualFold(req.headers["connection"], "close")
		if closes {
			how = "close"
		}
		_, err = fmt.Fprintf(c, "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n%s", status, len(body), how, body)
		if err != nil || closes {
			return
		}
	}
}

// allowed takes one request from an address's bucket, if there is one left.
func (s *server) allowed(address, path string) bool {
	if s.limit == 0 || strings.HasPrefix(path, "/debug/") {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	left, known := s.buckets[address]
	if !known {
		left = s.limit
	}
	if left == 0 {
		return false
	}
	s.buckets[address] = left - 1
	return true
}

func route(req *request) (status, body string) {
	if req.method != "GET" {
		return "405 Method Not Allowed", ""
	}
	switch req.path {
	case "/":
		return "200 OK", work.Hello
	case "/slow":
		time.Sleep(slow)
		return "200 OK", work.Hello
	case "/debug/stats":
		if text, err := work.ProcessJSON(); err == nil {
			return "200 OK", string(text)
		}
	}
	return "404 Not Found", ""
}
