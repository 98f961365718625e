// Command pools is a raw-TCP server as many begin in Go: a goroutine for each connection, a buffer for each request, and
// strings for all that it finds in it. With --pools the three buffers of each request come from pools. It answers "/" and
// "/ping", and "/debug/stats" for the lab.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/chert-http/chert/lab/serve"
	"github.com/chert-http/chert/lab/work"
)

var pooled = flag.Bool("pools", false, "take buffers from pools")

func main() { serve.Main(run) }

func run(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	s := server{requests: buffers(8<<10, *pooled), chunks: buffers(256, *pooled), responses: responses(*pooled)}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go s.serve(c)
	}
}

// server has what makes its buffers: the only difference between before and after.
type server struct {
	requests, chunks source[*[]byte]
	responses        source[*bytes.Buffer]
}

// source is where a buffer comes from and where it goes when it is not needed any more.
type source[T any] struct {
	get func() T
	put func(T)
}

func buffers(size int, pooled bool) source[*[]byte] {
	made := func() *[]byte { b := make([]byte, size); return &b }
	if !pooled {
		return source[*[]byte]{made, func(*[]byte) {}}
	}
	pool := sync.Pool{New: func() any { return made() }}
	return source[*[]byte]{func() *[]byte { return pool.Get().(*[]byte) }, func(b *[]byte) { pool.Put(b) }}
}

func responses(pooled bool) source[*bytes.Buffer] {
	if !pooled {
		return source[*bytes.Buffer]{func() *bytes.Buffer { return new(bytes.Buffer) }, func(*bytes.Buffer) {}}
	}
	pool := sync.Pool{New: func() any { return new(bytes.Buffer) }}
	return source[*bytes.Buffer]{func() *bytes.Buffer { return pool.Get().(*bytes.Buffer) }, func(b *bytes.Buffer) { b.Reset(); pool.Put(b) }}
}

func (s *server) serve(c net.Conn) {
	defer c.Close()
	var rest []byte // the beginning of the next request
	for {
		keep, left, err := s.exchange(c, rest)
		if err != nil || !keep {
			return
		}
		rest = left
	}
}

var errTooLarge = errors.New("request too large")

// exchange reads one request, in chunks, and answers it.
func (s *server) exchange(c net.Conn, rest []byte) (keep bool, left []byte, err error) {
	whole := s.requests.get()
	defer s.requests.put(whole)
	chunk := s.chunks.get()
	defer s.chunks.put(chunk)
	n := copy(*whole, rest)
	for {
		if end := bytes.Index((*whole)[:n], []byte("\r\n\r\n")); end >= 0 {
			if n > end+4 {
				left = bytes.Clone((*whole)[end+4 : n])
			}
			keep, err := s.answer(c, (*whole)[:end])
			return keep, left, err
		}
		k, err := c.Read(*chunk)
		if err != nil {
			return false, nil, err
		}
		if n+k > len(*whole) {
			return false, nil, errTooLarge
		}
		n += copy((*whole)[n:], (*chunk)[:k])
	}
}

// answer splits the head into strings, as the server before did and the one after still does: pools were all that changed.
func (s *server) answer(c net.Conn, head []byte) (keep bool, err error) {
	lines := strings.Split(string(head), "\r\n")
	fields := strings.Fields(lines[0])
	if len(fields) != 3 {
		_, err := io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		return false, err
	}
	headers := map[string]string{}
	for _, line := range lines[1:] {
		if name, value, ok := strings.Cut(line, ":"); ok {
			headers[strings.ToLower(name)] = strings.TrimSpace(value)
		}
	}
	// HTTP/1.0, which ab speaks, closes unless it is asked not to.
	connection := strings.ToLower(headers["connection"])
	keep = connection == "keep-alive" || fields[2] == "HTTP/1.1" && connection != "close"
	status, body := route(fields[1])
	out := s.responses.get()
	defer s.responses.put(out)
	how := "close"
	if keep {
		how = "keep-alive"
	}
	fmt.Fprintf(out, "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n%s", status, len(body), how, body)
	_, err = c.Write(out.Bytes())
	return keep, err
}

func route(path string) (status, body string) {
	switch path {
	case "/":
		return "200 OK", work.Hello
	case "/ping":
		return "200 OK", "pong"
	case "/debug/stats":
		if text, err := work.ProcessJSON(); err == nil {
			return "200 OK", string(text)
		}
	}
	return "404 Not Found", ""
}
