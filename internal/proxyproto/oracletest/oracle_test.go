package oracletest

import (
	"bufio"
	"bytes"
	"net"
	"net/netip"
	"testing"

	oracle "github.com/pires/go-proxyproto"

	"github.com/chert-http/chert/internal/proxyproto"
)

// read is what the oracle makes of the header at the start of b, and its length.
func read(b []byte) (*oracle.Header, int, error) {
	in := bytes.NewReader(b)
	buffered := bufio.NewReaderSize(in, 2*proxyproto.MaxHeader)
	h, err := oracle.Read(buffered)
	return h, len(b) - in.Len() - buffered.Buffered(), err
}

// stream reports whether h has addresses of TCP that are to be used.
func stream(h *oracle.Header) bool {
	return h.Command.IsProxy() && (h.TransportProtocol == oracle.TCPv4 || h.TransportProtocol == oracle.TCPv6)
}

func addrPort(a net.Addr) netip.AddrPort {
	p := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

// headers are valid headers as the oracle writes them, with TLVs in version 2.
func headers(t testing.TB) (all []*oracle.Header) {
	for _, ip := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"2001:db8::1", "2001:db8::2"}} {
		src, dst := &net.TCPAddr{IP: net.ParseIP(ip[0]), Port: 1234}, &net.TCPAddr{IP: net.ParseIP(ip[1]), Port: 443}
		for version := byte(1); version <= 2; version++ {
			all = append(all, oracle.HeaderProxyFromAddrs(version, src, dst))
		}
		withTLVs := oracle.HeaderProxyFromAddrs(2, src, dst)
		if err := withTLVs.SetTLVs([]oracle.TLV{{Type: oracle.PP2_TYPE_AUTHORITY, Value: []byte("example.org")}}); err != nil {
			t.Fatal(err)
		}
		all = append(all, withTLVs)
	}
	unix := &net.UnixAddr{Net: "unix", Name: "/run/socket"}
	local := &oracle.Header{Version: 2, Command: oracle.LOCAL, TransportProtocol: oracle.UNSPEC}
	return append(all, oracle.HeaderProxyFromAddrs(2, unix, unix), local)
}

// What the oracle writes is understood.
func TestWritten(t *testing.T) {
	t.Parallel()
	for _, h := range headers(t) {
		b, err := h.Format()
		if err != nil {
			t.Fatal(err)
		}
		got, n, err := proxyproto.Parse(append(b, "GET / HTTP/1.1\r\n"...))
		if err != nil || n != len(b) {
			t.Errorf("%q: %d, %v", b, n, err)
			continue
		}
		var want proxyproto.Header
		if stream(h) {
			want = proxyproto.Header{Source: addrPort(h.SourceAddr), Destination: addrPort(h.DestinationAddr)}
		}
		if got != want {
			t.Errorf("%q: %v, want %v", b, got, want)
		}
	}
}

// What Parse accepts, the oracle accepts as the same. Not the reverse: it does not look at
// checksums, for one.
func FuzzOracle(f *testing.F) {
	for _, h := range headers(f) {
		b, err := h.Format()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add([]byte("PROXY UNKNOWN a b c\r\nGET"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, n, err := proxyproto.Parse(b)
		if n == 0 || err != nil {
			return
		}
		h, m, err := read(b)
		if err != nil && b[0] == '\r' && (b[12] == 0x20 || b[13] == 0) {
			// The family of LOCAL is to be ignored, and a receiver may accept an unspecified
			// one (section 2.2); the oracle refuses some of both.
			return
		}
		if err != nil {
			t.Fatalf("%q: %v, but %v", b[:n], got, err)
		}
		if m != n {
			t.Fatalf("%q: %d bytes, the oracle took %d", b, n, m)
		}
		var want proxyproto.Header
		if stream(h) {
			want = proxyproto.Header{Source: addrPort(h.SourceAddr), Destination: addrPort(h.DestinationAddr)}
		}
		if got != want {
			t.Fatalf("%q: %v, the oracle has %v", b[:n], got, want)
		}
	})
}
