// Command chert3 is chert with package http3 as a server under test; package serve says what it serves. HTTP/3 is at the
// address for TLS, beside HTTP/1 and HTTP/2.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net/http"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/http3"
	"github.com/chert-http/chert/static"

	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/lab/serve"
	"github.com/chert-http/chert/lab/work"
)

var (
	as     = flag.String("as", "plain", "plain, direct or events: as chert, as chertdirect, as chertevents")
	folder = flag.String("files", "", "folder to serve instead, directly unless --as is plain")
)

func main() {
	serve.Main(func(addr string) error {
		h, err := chosen()
		if err != nil {
			return err
		}
		s := &chert.Server{Addr: addr, MaxConns: -1, HTTP3: http3.New(nil)}
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{serve.Certificate()}}
		if s.Handler = h; *as != "direct" {
			s.Handler = serve.TLS(h, s.Listen, s.ServeTLS)
		}
		if err := serve.AlsoTLS(s.Listen, s.ServeTLS); err != nil {
			return err
		}
		return s.ListenAndServe()
	})
}

// chosen is the handler that the flags name.
func chosen() (http.Handler, error) {
	if *folder != "" {
		h, err := static.New(*folder, nil)
		if *as == "plain" {
			return http.HandlerFunc(h.ServeHTTP), err
		}
		return h, err
	}
	switch *as {
	case "plain":
		return handler.New(), nil
	case "direct":
		hello := direct.NewResponse(http.StatusOK, http.Header{"Content-Type": {"text/plain"}}, []byte(work.Hello))
		return root{handler.New(), hello}, nil
	case "events":
		return events()
	}
	return nil, fmt.Errorf("--as %s: what?", *as)
}

// events has package eventstream for /debug/events, without heartbeats, as the others are.
func events() (http.Handler, error) {
	topic, err := eventstream.NewTopic(nil)
	if err != nil {
		return nil, err
	}
	open, err := eventstream.New(&eventstream.Options{
		OnOpen: func(s *eventstream.Stream, _ *http.Request) { topic.Join(s) }, Heartbeat: -1,
	})
	if err != nil {
		return nil, err
	}
	return handler.WithEvents(open, func(data string) { topic.Publish(eventstream.Event{Data: data}) }), nil
}

// root answers "/" directly and leaves the rest to the plain handler.
type root struct {
	http.Handler
	hello *direct.Response
}

// ServeDirect implements direct.Handler.
func (h root) ServeDirect(x *direct.Exchange) bool {
	if x.Method() != http.MethodGet || string(x.Path()) != "/" {
		return false
	}
	x.Send(h.hello)
	return true
}
