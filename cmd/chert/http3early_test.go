package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert/internal/testing/freeport"
)

// A reload switches early data off, and on again if it was on at the start.
func TestHTTP3EarlyData(t *testing.T) {
	needSignals(t)
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	ca.server(dir, "cert", "127.0.0.1")
	write(t, filepath.Join(dir, "www", "f"), "body")
	file := filepath.Join(dir, "chert.toml")
	config := func(early bool) {
		write(t, file, fmt.Sprintf("http3 = true\nhttp3_early_data = %v\n[[site]]\nhosts = ['*']\nroot = 'www'\n"+
			"tls_cert = 'cert.pem'\ntls_key = 'cert-key.pem'\n", early))
	}
	for _, first := range []bool{true, false} {
		config(first)
		p := start(t, "--config", file, "--listen", freeport.Both(t))
		p.line()
		to, err := net.ResolveUDPAddr("udp", addrOf(t, p.urls[0]))
		if err != nil {
			t.Fatal(err)
		}
		for _, on := range []bool{first, !first, first} {
			config(on)
			p.reload()
			p.line()
			if got := comesBackEarly(t, to, ca); got != (on && first) {
				t.Errorf("at first %v, then %v: early data %v", first, on, got)
			}
		}
		until(t, func() bool {
			return first || strings.Contains(p.stderr.String(), "http3_early_data stays off; restart chert for that")
		})
		p.cmd.Process.Kill()
		p.wait()
	}
}

// comesBackEarly reports whether a server accepts the early data of a client that has been there.
func comesBackEarly(t *testing.T, to net.Addr, ca *testCA) bool {
	t.Helper()
	u, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	tr := &quic.Transport{Conn: u}
	defer u.Close()
	defer tr.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tickets := make(ticketCache, 1)
	cfg := &tls.Config{RootCAs: ca.pool, ServerName: "127.0.0.1", NextProtos: []string{"h3"}, ClientSessionCache: tickets}
	first, err := tr.Dial(ctx, to, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ticket *tls.ClientSessionState
	select {
	case ticket = <-tickets:
	case <-ctx.Done():
		t.Fatal("no ticket")
	}
	first.CloseWithError(0x100, "")
	tickets <- ticket
	second, err := tr.DialEarly(ctx, to, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer second.CloseWithError(0x100, "")
	select {
	case <-second.HandshakeComplete():
	case <-second.Context().Done():
		t.Fatal(context.Cause(second.Context()))
	}
	return second.ConnectionState().Used0RTT
}

// ticketCache has a ticket, or none.
type ticketCache chan *tls.ClientSessionState

func (c ticketCache) Get(string) (*tls.ClientSessionState, bool) {
	select {
	case ticket := <-c:
		return ticket, true
	default:
		return nil, false
	}
}

func (c ticketCache) Put(_ string, ticket *tls.ClientSessionState) {
	if ticket != nil {
		select {
		case c <- ticket:
		default:
		}
	}
}
