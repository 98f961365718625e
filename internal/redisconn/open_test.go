package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// shakeHands returns the port of a server on 127.0.0.1 that does nothing else.
func shakeHands(t *testing.T, config *tls.Config) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			tls.Server(c, config).Handshake()
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// Each server is verified by its own name. The first of the URL, which does not run here, is that
// of servers without a name.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ url, want string }{
		{"rediss+cluster://127.0.0.1:1?addr=localhost:", "localhost"},
		{"rediss+cluster://localhost:1?addr=127.0.0.1:", "localhost"},
		{"rediss+sentinel://127.0.0.1:1?master_name=m&addr=localhost:", "localhost"},
		{"rediss+sentinel://localhost:1?master_name=m&addr=127.0.0.1:", "localhost"},
		{"rediss://localhost:", "localhost"},
	} {
		asked := make(chan string, 100)
		port := shakeHands(t, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			asked <- h.ServerName
			return nil, errors.New("no session")
		}})
		client, _, err := Open(tt.url+port, 10*time.Second, 0)
		if err != nil {
			t.Errorf("%s: %v", tt.url, err)
			continue
		}
		client.Ping(context.Background())
		client.Close()
		select {
		case got := <-asked:
			if got != tt.want {
				t.Errorf("%s: asks for %q, want %q", tt.url, got, tt.want)
			}
		default:
			t.Errorf("%s: no server was asked", tt.url)
		}
	}
}

// A server is accepted with the name, or the IP address, that it must have.
func TestVerified(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t) // of 127.0.0.1 and example.com
	port := shakeHands(t, &tls.Config{Certificates: []tls.Certificate{cert}})
	for _, tt := range []struct {
		first, host string
		want        bool
	}{
		{"192.0.2.1", "127.0.0.1", true},
		{"example.com", "127.0.0.1", true},
		{"example.net", "127.0.0.1", false},
		{"example.com", "localhost", false},
	} {
		dial := dialer(&tls.Config{ServerName: tt.first, RootCAs: roots}, 10*time.Second)
		c, err := dial(t.Context(), "tcp", net.JoinHostPort(tt.host, port))
		if (err == nil) != tt.want {
			t.Errorf("%s of a URL with %s: %v", tt.host, tt.first, err)
		}
		if err == nil {
			c.Close()
		}
	}
}

// What cannot be read is an error, and not left out.
func TestLostParameters(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"redis://h:1?client_name=%zz", "redis+sentinel://h:1?master_name=m&password=ses%ame", "redis+cluster://h:1?client_name=a;b",
	} {
		_, _, err := Open(bad, time.Second, 0)
		if err == nil || !strings.Contains(err.Error(), "a parameter cannot be read") || strings.Contains(err.Error(), "ses") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// No error has a part of the password in it, whatever that consists of.
func TestLostPassword(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"/", "?", "#", "@", "%", "@/", "@x/", "@x?", "/@", ":/"} {
		for _, form := range []string{"redis://:pass%sword@h:1/0", "redis+cluster://u:pass%sword@h:1",
			"redis+sentinel://u:pass%sword@h:1/0?master_name=m"} {
			raw := strings.Replace(form, "%s", c, 1)
			client, where, err := Open(raw, time.Second, 0)
			if err == nil {
				client.Close()
			}
			if got := fmt.Sprint(where, err); strings.Contains(got, "word@") || strings.Contains(got, "pass"+c) {
				t.Errorf("%s: %s", raw, got)
			}
		}
	}
}
