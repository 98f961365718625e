// The constraint gives this file the version of the language that chert has:
// it is copied into modules that are at an older one.

//go:build go1.26

package onchert

import (
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/chertest"
)

// The environment of a run.
const (
	EngineVar = "CHERT_SUITES_ENGINE" // "goroutines", or anything for the default
	NotesVar  = "CHERT_SUITES_NOTES"  // the file for the notes, empty for none
)

// through puts a proxy in front of handlers. It is nil in a suite that is not run through one:
// what sets it is copied for the others only.
var through func(http.Handler) http.Handler

// Server is in place of httptest.Server.
type Server = chertest.Server

// NewServer is in place of httptest.NewServer.
func NewServer(h http.Handler) *Server {
	s := NewUnstartedServer(h)
	s.Start()
	return s
}

// NewTLSServer is in place of httptest.NewTLSServer.
func NewTLSServer(h http.Handler) *Server {
	s := NewUnstartedServer(h)
	s.StartTLS()
	return s
}

// NewUnstartedServer is in place of httptest.NewUnstartedServer.
func NewUnstartedServer(h http.Handler) *Server {
	if through != nil {
		h = through(h)
	}
	s := chertest.NewUnstartedServer(h)
	s.Config.Engine = Engine()
	return s
}

// Serve is in place of http.Serve.
func Serve(l net.Listener, h http.Handler) error {
	e := Engine()
	if e == chert.EngineAuto {
		return chert.Serve(l, h)
	}
	s := &chert.Server{Handler: h, Engine: e}
	return s.Serve(l)
}

// ServeTLS is in place of http.ServeTLS.
func ServeTLS(l net.Listener, h http.Handler, certFile, keyFile string) error {
	e := Engine()
	if e == chert.EngineAuto {
		return chert.ServeTLS(l, h, certFile, keyFile)
	}
	s := &chert.Server{Handler: h, Engine: e}
	return s.ServeTLS(l, certFile, keyFile)
}

// ListenAndServe is in place of http.ListenAndServe.
func ListenAndServe(addr string, h http.Handler) error {
	e := Engine()
	if e == chert.EngineAuto {
		return chert.ListenAndServe(addr, h)
	}
	s := &chert.Server{Addr: addr, Handler: h, Engine: e}
	return s.ListenAndServe()
}

// ListenAndServeTLS is in place of http.ListenAndServeTLS.
func ListenAndServeTLS(addr, certFile, keyFile string, h http.Handler) error {
	e := Engine()
	if e == chert.EngineAuto {
		return chert.ListenAndServeTLS(addr, certFile, keyFile, h)
	}
	s := &chert.Server{Addr: addr, Handler: h, Engine: e}
	return s.ListenAndServeTLS(certFile, keyFile)
}

// Engine returns the engine of this run. A caller is about to create a server,
// so it records that, with the test.
func Engine() chert.Engine {
	note()
	if os.Getenv(EngineVar) == "goroutines" {
		return chert.EngineGoroutines
	}
	return chert.EngineAuto
}

// note writes a line for a server: "package test", the calling test as found on the
// stack. A goroutine that a test has started also has the test's name there; a server that
// is made by no test, or by a goroutine of a program that the test has started, has the
// package alone.
func note() {
	file := os.Getenv(NotesVar)
	if file == "" {
		return
	}
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	line := ""
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if pkg, test, ok := testOf(f.Function); ok {
			line = pkg + " " + test + "\n" // the outermost wins
		}
	}
	if line == "" {
		line = program() + "\n"
	}
	w, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic("onchert: " + err.Error())
	}
	defer w.Close()
	if _, err := w.WriteString(line); err != nil {
		panic("onchert: " + err.Error())
	}
}

// program is the package whose tests this program runs, or the program's own.
func program() string {
	b, ok := debug.ReadBuildInfo()
	if !ok || b.Path == "" {
		return "unknown"
	}
	return strings.TrimSuffix(b.Path, ".test")
}

// testOf splits a function's full name and reports whether it is of a test.
// Names with a small t are the bodies of tests that run in several modes. Methods are
// subtests of a function Test, as grpc-go has them.
func testOf(function string) (pkg, test string, ok bool) {
	slash := strings.LastIndexByte(function, '/') + 1
	last, rest, _ := strings.Cut(function[slash:], ".")
	name, method, _ := strings.Cut(rest, ".")
	method, _, _ = strings.Cut(method, ".")
	if after, found := strings.CutPrefix(method, "Test"); found && name[0] != '(' {
		return function[:slash] + strings.TrimSuffix(last, "_test"), "Test/" + after, true
	}
	for _, prefix := range []string{"Test", "test", "Example"} {
		if after, found := strings.CutPrefix(name, prefix); found && name != "TestMain" {
			if prefix == "test" {
				prefix = "Test"
			}
			return function[:slash] + strings.TrimSuffix(last, "_test"), prefix + after, true
		}
	}
	return "", "", false
}
