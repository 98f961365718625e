// Command quicgo is quic-go's http3.Server, beside net/http's for HTTP/1 and HTTP/2, as a server under test; package serve
// says what it serves. HTTP/3 is at the address for TLS.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/lab/serve"
)

var folder = flag.String("files", "", "folder to serve instead")

func main() {
	serve.Main(func(addr string) error {
		certificates := []tls.Certificate{serve.Certificate()}
		over := &http3.Server{
			TLSConfig:  http3.ConfigureTLSConfig(&tls.Config{Certificates: certificates}),
			QUICConfig: &quic.Config{MaxIdleTimeout: time.Hour}, // by default half a minute
		}
		s := &http.Server{Addr: addr, TLSConfig: &tls.Config{Certificates: certificates, NextProtos: []string{"h2", "http/1.1"}}}
		listen := func(network, addr string) (net.Listener, error) { return both(over, network, addr) }
		if s.Handler = http.Handler(http.FileServer(http.Dir(*folder))); *folder == "" {
			s.Handler = serve.TLS(handler.New(), listen, s.ServeTLS)
		}
		over.Handler = s.Handler
		if err := serve.AlsoTLS(listen, s.ServeTLS); err != nil {
			return err
		}
		return s.ListenAndServe()
	})
}

// both listens for TCP, and serves HTTP/3 on UDP at the same port.
func both(over *http3.Server, network, addr string) (net.Listener, error) {
	l, err := net.Listen(network, addr)
	if err != nil {
		return nil, err
	}
	at := l.Addr().(*net.TCPAddr)
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: at.IP, Port: at.Port})
	if err != nil {
		l.Close()
		return nil, err
	}
	go func() {
		fmt.Fprintln(os.Stderr, over.Serve(c))
		os.Exit(1)
	}()
	return l, nil
}
