package behave

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// functions are the package's functions for serving, ours and net/http's.
type functions struct {
	serve     func(net.Listener, http.Handler) error
	serveTLS  func(l net.Listener, h http.Handler, certFile, keyFile string) error
	listen    func(addr string, h http.Handler) error
	listenTLS func(addr, certFile, keyFile string, h http.Handler) error
}

var bothFunctions = map[string]functions{
	"chert":   {chert.Serve, chert.ServeTLS, chert.ListenAndServe, chert.ListenAndServeTLS},
	"nethttp": {http.Serve, http.ServeTLS, http.ListenAndServe, http.ListenAndServeTLS},
}

// defaultPath is served by http.DefaultServeMux.
const defaultPath = "/chert-tests-default"

var onDefaultMux = sync.OnceFunc(func() {
	http.HandleFunc(defaultPath, func(w http.ResponseWriter, r *http.Request) { put(w, "default") })
})

func TestFunctions(t *testing.T) {
	t.Parallel()
	onDefaultMux()
	certFile, keyFile, roots := servertest.CertFiles(t)
	mine := hf(func(w http.ResponseWriter, r *http.Request) { put(w, "mine") })
	for name, f := range bothFunctions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, secure := range []bool{false, true} {
				for want, h := range map[string]http.Handler{"mine": mine, "default": nil} {
					l := servertest.ListenTCP(t)
					end := make(chan error, 1)
					go func() {
						if secure {
							end <- f.serveTLS(l, h, certFile, keyFile)
						} else {
							end <- f.serve(l, h)
						}
					}()
					c := servertest.Dial(t, l.Addr().String())
					if secure {
						c, _ = servertest.TLSOver(t, c.Conn, roots)
					}
					if res, body := c.Get(defaultPath); res.StatusCode != 200 || body != want {
						t.Errorf("got %v %q, want %q", res.Status, body, want)
					}
					l.Close()
					if err := servertest.Await(t, end, "the function"); !errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed) {
						t.Errorf("it returned %v", err)
					}
					c.Get(defaultPath) // still served
					c.Close()
				}
			}
			taken := servertest.ListenTCP(t)
			defer taken.Close()
			if err := f.listen(taken.Addr().String(), mine); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("ListenAndServe returned %v", err)
			}
			if err := f.listenTLS(taken.Addr().String(), certFile, keyFile, mine); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("ListenAndServeTLS returned %v", err)
			}
			// Without a certificate nothing is served; the listener still
			// belongs to its owner.
			if err := f.serveTLS(taken, mine, "no-such-file", keyFile); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("ServeTLS returned %v", err)
			}
			if err := f.listenTLS("127.0.0.1:0", certFile, "no-such-file", mine); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("ListenAndServeTLS returned %v", err)
			}
			if err := taken.Close(); err != nil {
				t.Errorf("ServeTLS has closed the listener: %v", err)
			}
		})
	}
}

// Nothing can end what ListenAndServe began, so it runs in a process of its
// own.
func TestFunctionsListen(t *testing.T) {
	t.Parallel()
	_, _, roots := servertest.CertFiles(t)
	for name := range bothFunctions {
		for _, secure := range []string{"plain", "secure"} {
			t.Run(name+","+secure, func(t *testing.T) {
				t.Parallel()
				child := servertest.StartChild(t, "TestFunctionsChild", "listen "+name+" "+secure)
				for range 2 {
					c := servertest.Dial(t, child.Addr)
					if secure == "secure" {
						c, _ = servertest.TLSOver(t, c.Conn, roots)
					}
					for range 2 {
						if _, body := c.Get("/"); body != "from the child" {
							t.Errorf("got %q", body)
						}
					}
				}
			})
		}
	}
}

func TestFunctionsChild(t *testing.T) {
	var name, secure string
	if n, _ := fmt.Sscanf(os.Getenv(servertest.ChildEnv), "listen %s %s", &name, &secure); n != 2 {
		t.Skip("a part of TestFunctionsListen")
	}
	log.SetOutput(io.Discard) // below, a client does not speak TLS at first
	certFile, keyFile, _ := servertest.CertFiles(t)
	h := hf(func(w http.ResponseWriter, r *http.Request) { put(w, "from the child") })
	addr := freeport.Addr(t)
	end := make(chan error, 1)
	go func() {
		if f := bothFunctions[name]; secure == "secure" {
			end <- f.listenTLS(addr, certFile, keyFile, h)
		} else {
			end <- f.listen(addr, h)
		}
	}()
	for {
		select {
		case err := <-end:
			t.Fatal(err)
		default:
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				continue
			}
			nc.Close()
			fmt.Println("addr", addr)
			io.Copy(io.Discard, os.Stdin) // until the parent ends this
			return
		}
	}
}

// The methods listen on any port of any address, until Shutdown.
func TestListenAndServeShutdown(t *testing.T) {
	t.Parallel()
	certFile, keyFile, roots := servertest.CertFiles(t)
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		for _, addr := range []string{":0", "127.0.0.1:0", "localhost:0"} {
			for _, secure := range []bool{false, true} {
				if secure && e == chert.EngineLoops {
					continue
				}
				opened := make(chan net.Addr, 1)
				ctl := engines.ControlOf(&chert.Server{Engine: e, Addr: addr,
					BaseContext: func(l net.Listener) context.Context {
						opened <- l.Addr()
						return context.Background()
					},
					Handler: hf(func(w http.ResponseWriter, r *http.Request) { put(w, "hi") }),
				})
				end := make(chan error, 1)
				go func() {
					if secure {
						end <- ctl.ListenAndServeTLS(certFile, keyFile)
					} else {
						end <- ctl.ListenAndServe()
					}
				}()
				var port int
				select {
				case a := <-opened:
					port = a.(*net.TCPAddr).Port
				case err := <-end:
					t.Fatal(err)
				case <-time.After(servertest.Patience):
					t.Fatal("no process listens")
				}
				c := servertest.Dial(t, net.JoinHostPort("localhost", fmt.Sprint(port)))
				if secure {
					c, _ = servertest.TLSOver(t, c.Conn, roots)
				}
				if _, body := c.Get("/"); body != "hi" {
					t.Errorf("got %q", body)
				}
				if err := ctl.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
				if err := servertest.Await(t, end, "ListenAndServe"); err != chert.ErrServerClosed {
					t.Errorf("it returned %v", err)
				}
				c.Ended()
				if err := ctl.ListenAndServe(); err != chert.ErrServerClosed {
					t.Errorf("the second ListenAndServe returned %v", err)
				}
			}
		}
		taken := servertest.ListenTCP(t)
		defer taken.Close()
		ctl := engines.ControlOf(&chert.Server{Engine: e, Addr: taken.Addr().String()})
		if err := ctl.ListenAndServe(); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("ListenAndServe returned %v", err)
		}
		if err := ctl.ListenAndServeTLS(certFile, keyFile); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("ListenAndServeTLS returned %v", err)
		}
	})
}
