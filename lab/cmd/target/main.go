// Command target is a server that the attacks of package attack are run against: chert on event loops or on
// goroutines, or net/http, each with its defaults. It serves HTTP/1 and HTTP/2 in plain text, HTTP/1 with TLS with
// an ECDSA and an RSA certificate, and HTTP/3, with quic-go's server in net/http's place. SIGTERM shuts it down.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quic-go/quic-go/http3"

	"github.com/chert-http/chert"
	cherthttp3 "github.com/chert-http/chert/http3"
	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/websocket"
)

// server is what http.Server and chert.Server have in common.
type server interface {
	Serve(net.Listener) error
	ServeTLS(l net.Listener, certFile, keyFile string) error
	Shutdown(context.Context) error
}

func main() {
	kind := flag.String("server", "chert", "chert, chertgoroutines or nethttp")
	plain := flag.String("listen", "127.0.0.1:8080", "address in plain text")
	ecdsaAddr := flag.String("tls", "127.0.0.1:8443", "address with an ECDSA certificate")
	rsaAddr := flag.String("rsa", "127.0.0.1:8444", "address with an RSA certificate")
	h3Addr := flag.String("h3", "127.0.0.1:8445", "address of HTTP/3")
	flag.Parse()
	if err := run(*kind, *plain, *ecdsaAddr, *rsaAddr, *h3Addr); err != nil {
		fmt.Fprintln(os.Stderr, "target:", err)
		os.Exit(1)
	}
}

func run(kind, plain, ecdsaAddr, rsaAddr, h3Addr string) error {
	h := routes()
	quiet := log.New(io.Discard, "", 0) // attacks make many lines, and writing them would be what is measured
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	open := func(key, public any, over3 bool) (server, error) {
		cert, err := certificate(key, public)
		if err != nil {
			return nil, err
		}
		cfg := &tls.Config{Certificates: []tls.Certificate{cert}}
		engine := chert.EngineAuto
		switch kind {
		case "nethttp":
			if over3 {
				return overQUIC{&http3.Server{Handler: h, TLSConfig: http3.ConfigureTLSConfig(cfg)}}, nil
			}
			return &http.Server{Handler: h, TLSConfig: cfg, Protocols: &protocols, ErrorLog: quiet}, nil
		case "chert":
		case "chertgoroutines":
			engine = chert.EngineGoroutines
		default:
			return nil, fmt.Errorf("no server %q", kind)
		}
		s := &chert.Server{Handler: h, TLSConfig: cfg, Protocols: &protocols, ErrorLog: quiet, ExtendedConnect: true, Engine: engine}
		if over3 {
			s.HTTP3 = cherthttp3.New(nil)
		}
		return s, nil
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	a, err := open(ec, &ec.PublicKey, false)
	if err != nil {
		return err
	}
	b, err := open(rs, &rs.PublicKey, false)
	if err != nil {
		return err
	}
	c, err := open(ec, &ec.PublicKey, true)
	if err != nil {
		return err
	}
	failed := func(err error) {
		if err != http.ErrServerClosed {
			fmt.Fprintln(os.Stderr, "target:", err)
			os.Exit(1)
		}
	}
	for _, on := range []struct {
		addr  string
		serve func(net.Listener) error
	}{
		{h3Addr, func(l net.Listener) error { return c.ServeTLS(l, "", "") }},
		{rsaAddr, func(l net.Listener) error { return b.ServeTLS(l, "", "") }},
		{ecdsaAddr, func(l net.Listener) error { return a.ServeTLS(l, "", "") }},
		{plain, a.Serve}, // last: it is awaited
	} {
		l, err := listen(a, on.addr)
		if err != nil {
			return err
		}
		go func() { failed(on.serve(l)) }()
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c.Shutdown(ctx)
	b.Shutdown(ctx)
	return a.Shutdown(ctx)
}

// overQUIC is quic-go's server, at the port of UDP that a listener has of TCP.
type overQUIC struct{ *http3.Server }

func (s overQUIC) Serve(l net.Listener) error {
	at := l.Addr().(*net.TCPAddr)
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: at.IP, Port: at.Port})
	if err != nil {
		return err
	}
	return s.Server.Serve(c)
}

func (s overQUIC) ServeTLS(l net.Listener, _, _ string) error { return s.Serve(l) }

// listen opens a listener that chert's loops accept on themselves, as with ListenAndServe.
func listen(s server, addr string) (net.Listener, error) {
	if c, ok := s.(*chert.Server); ok {
		return c.Listen("tcp", addr)
	}
	return net.Listen("tcp", addr)
}

func routes() http.Handler {
	sockets, err := websocket.New(&websocket.Options{
		OnMessage: func(c *websocket.Conn, t websocket.Type, p []byte) { c.Send(t, p) },
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", handler.New())
	mux.Handle("/ws", sockets)
	mux.HandleFunc("/fields", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("kb"))
		for i := range min(n, 64) {
			w.Header().Set("X-Field-"+strconv.Itoa(i), strings.Repeat("x", 1000))
		}
	})
	large := make([]byte, 4<<20)
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) { w.Write(large) })
	mux.HandleFunc("/debug/ok", func(http.ResponseWriter, *http.Request) {})
	return mux
}

func certificate(key, public any) (tls.Certificate, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
