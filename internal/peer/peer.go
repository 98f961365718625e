package peer

import (
	"net"
	"net/netip"
	"sync/atomic"
	"unsafe"
)

// A Peer is the text of a client's address.
type Peer struct {
	// RemoteAddr is as in http.Request.
	RemoteAddr string
	// IP is the address in RemoteAddr as package netip formats it; "" if there is none, if it has a
	// zone, or if RemoteAddr is formatted differently.
	IP string
}

// Addr returns p as an address of package net: of, which is the connection's, unless a proxy has
// told another.
func (p Peer) Addr(of net.Addr) net.Addr {
	if p.RemoteAddr == "" || of != nil && of.String() == p.RemoteAddr {
		return of
	}
	return p.parsed()
}

func (p Peer) parsed() net.Addr {
	if ap, err := netip.ParseAddrPort(p.RemoteAddr); err == nil {
		return net.TCPAddrFromAddrPort(ap)
	}
	return &net.UnixAddr{Name: p.RemoteAddr, Net: "unix"}
}

// Parse makes a Peer of a RemoteAddr.
func Parse(text string) Peer {
	var a Addr
	a.Set(text)
	return a.Peer()
}

// An Addr is a client's address in 32 bytes. After Set, its methods are safe for concurrent use.
type Addr struct {
	// text is the first byte of RemoteAddr, whose length is n. It is nil after Forget.
	text atomic.Pointer[byte]
	ip   [16]byte // the last four if kind is v4
	n    uint32
	port uint16
	ipn  uint8 // the length of Peer.IP
	kind kind
}

type kind uint8

const (
	other kind = iota // known by its text only
	v4
	v6
)

// Set makes a the address of which the text is RemoteAddr.
func (a *Addr) Set(text string) {
	a.n = uint32(len(text))
	a.text.Store(unsafe.StringData(text))
	ap, err := netip.ParseAddrPort(text)
	if err != nil || ap.Addr().Zone() != "" {
		return
	}
	var b [64]byte // as long as an address and a port can be
	if string(ap.AppendTo(b[:0])) != text {
		return
	}
	a.ip, a.port, a.kind = ap.Addr().As16(), ap.Port(), v6
	a.ipn = uint8(len(ap.Addr().AppendTo(b[:0])))
	if ap.Addr().Is4() {
		a.kind = v4
	}
}

// Forget drops the text, of which another copy is made when it is asked for. For a client that
// has been idle.
func (a *Addr) Forget() {
	if a.kind != other && a.text.Load() != nil {
		a.text.Store(nil)
	}
}

// Peer returns the address's text.
func (a *Addr) Peer() Peer {
	first := a.text.Load()
	if first == nil {
		first = a.again()
	}
	p := Peer{RemoteAddr: unsafe.String(first, a.n)}
	switch a.kind {
	case v4:
		p.IP = p.RemoteAddr[:a.ipn]
	case v6:
		p.IP = p.RemoteAddr[len("[") : len("[")+int(a.ipn)]
	}
	return p
}

func (a *Addr) again() *byte {
	if a.n == 0 {
		return nil
	}
	first := unsafe.StringData(a.addrPort().String())
	a.text.Store(first)
	return first
}

func (a *Addr) addrPort() netip.AddrPort {
	addr := netip.AddrFrom16(a.ip)
	if a.kind == v4 {
		addr = addr.Unmap()
	}
	return netip.AddrPortFrom(addr, a.port)
}

// Net returns the address as package net does.
func (a *Addr) Net() net.Addr {
	if a.kind != other {
		return net.TCPAddrFromAddrPort(a.addrPort())
	}
	return a.Peer().parsed()
}
