// Package h2spec runs the cases of h2spec as tests.
package h2spec

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
)

// answer waits for the body, so that what is wrong with it comes before the response.
func answer(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	io.WriteString(w, "Hello, World!")
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	check(t, s.Listener.Addr(), true)
}

// TestPlain is by prior knowledge, on a server that has no other protocol.
func TestPlain(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	check(t, s.Listener.Addr(), false)
}

func check(t *testing.T, at net.Addr, tls bool) {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		t.Fatal(err)
	}
	c := &config.Config{Host: host, Path: "/", Timeout: 2 * time.Second, MaxHeaderLen: 4000, TLS: tls, Insecure: true}
	c.Port, _ = strconv.Atoi(port)
	for _, all := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		group(t, c, all)
	}
}

func group(t *testing.T, c *config.Config, g *spec.TestGroup) {
	for i, tc := range g.Tests {
		t.Run(fmt.Sprintf("%s.%d", g.ID(), i+1), func(t *testing.T) {
			conn, err := spec.Dial(c)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			switch err := tc.Run(c, conn); err {
			case nil:
			case spec.ErrSkipped:
				t.Skip(tc.Desc)
			default:
				t.Errorf("%s\n%s\n%v", tc.Desc, tc.Requirement, err)
			}
		})
	}
	for _, sub := range g.Groups {
		group(t, c, sub)
	}
}
