package freeport

import (
	"net"
	"testing"
)

// Port returns a port of 127.0.0.1 that is reserved until the test ends; see Reserve.
func Port(t testing.TB) string {
	t.Helper()
	addr, release, err := Reserve("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// Addr returns an address of 127.0.0.1 whose port is reserved until the test ends: it refuses
// connections unless the test has a server listen there; see Reserve.
func Addr(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", Port(t))
}

// Reserve returns an address of host with a port that stays free until release is called:
// on Linux neither an outgoing connection nor another listener on port 0 is given it, while
// a server that listens at the address with SO_REUSEADDR, as package net does, gets it. On
// other systems the port was only free a moment ago. host is an IPv4 address of this
// machine. Reserve is safe for concurrent use.
func Reserve(host string) (addr string, release func(), err error) { return reserve(host) }

// wasFree returns a port that was free a moment ago.
func wasFree(host string) (addr string, release func(), err error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", nil, err
	}
	defer l.Close()
	return l.Addr().String(), func() {}, nil
}
