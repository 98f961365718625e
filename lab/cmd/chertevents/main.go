// Command chertevents is chert as a server under test, with package eventstream for /debug/events; package serve says
// what it serves.
package main

import (
	"crypto/tls"
	"net/http"
	"os"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"

	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/lab/serve"
)

func main() {
	serve.Main(func(addr string) error {
		topic, err := eventstream.NewTopic(nil)
		if err != nil {
			return err
		}
		// Without heartbeats, as the others are.
		open, err := eventstream.New(&eventstream.Options{
			OnOpen: func(s *eventstream.Stream, _ *http.Request) { topic.Join(s) }, Heartbeat: -1,
		})
		if err != nil {
			return err
		}
		s := &chert.Server{Addr: addr, MaxConns: -1, TLSConfig: &tls.Config{Certificates: []tls.Certificate{serve.Certificate()}}}
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetHTTP2(true)
		s.Protocols.SetUnencryptedHTTP2(true)
		if os.Getenv("CHERT_ENGINE") == "goroutines" {
			s.Engine = chert.EngineGoroutines
		}
		h := handler.WithEvents(open, func(data string) { topic.Publish(eventstream.Event{Data: data}) })
		s.Handler = serve.TLS(h, s.Listen, s.ServeTLS)
		return s.ListenAndServe()
	})
}
