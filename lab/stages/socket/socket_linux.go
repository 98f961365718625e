// Package socket is what the four stages share: a socket that listens, where a request ends, and the answer.
package socket

import (
	"bytes"
	"errors"
	"net"
	"syscall"
)

// MaxHead is how large a request may be. None of the stages reads bodies.
const MaxHead = 8 << 10

// Answers, to a client that may keep its connection and to one that may not.
const (
	Kept    = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!"
	Closing = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\nConnection: close\r\n\r\nHello, World!"
	Refused = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)

// backlog is how many connections the kernel keeps until they are accepted. It is bounded by net.core.somaxconn.
const backlog = 4096

// reusePort is SO_REUSEPORT, which package syscall lacks on some systems.
const reusePort = 0xf

// Listen returns a blocking socket that listens on host:port. With shared others may listen on the same port: the kernel
// then divides new connections among them.
func Listen(addr string, shared bool) (int, error) {
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return -1, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	// Without it a restart would have to wait for the connections that are in TIME_WAIT.
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if shared {
		err = errors.Join(err, syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, reusePort, 1))
	}
	err = errors.Join(err, syscall.Bind(fd, &syscall.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())}))
	if err = errors.Join(err, syscall.Listen(fd, backlog)); err != nil {
		syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

var (
	headEnd   = []byte("\r\n\r\n")
	wantClose = []byte("\r\nConnection: close\r\n")
)

// Request finds the first request in b: how long it is, 0 if it is not complete, and whether its client wants the
// connection to be closed.
func Request(b []byte) (size int, closes bool) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return 0, false
	}
	return end + len(headEnd), bytes.Contains(b[:end+2], wantClose)
}
