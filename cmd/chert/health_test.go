package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// healthOf runs "chert health", which may take as long as a busy machine does.
func healthOf(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return inProcess(t, append([]string{"health", "--timeout", patience.String()}, args...)...)
}

// answering answers every connection with the bytes, and closes it.
func answering(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 4096)) // the request, which fits
			io.WriteString(c, answer)
			c.Close()
		}
	}()
	return l.Addr().String()
}

func TestHealth(t *testing.T) {
	t.Parallel()
	const empty = "\r\nContent-Length: 0\r\n\r\n"
	for _, tt := range []struct {
		why, answer string
		code        int
		want        string
	}{
		{"a page", "HTTP/1.1 200 OK" + empty, exitOK, "/: 200 OK"},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", exitOK, "204 No Content"},
		{"a redirect, which is not followed", "HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/" + empty, exitOK, "302 Found"},
		{"a status without a name", "HTTP/1.1 299 x\x1b[2J" + empty, exitOK, ": 299\n"},
		{"a password is needed", "HTTP/1.1 401 Unauthorized" + empty, exitFailure, "401 Unauthorized"},
		{"not there", "HTTP/1.1 404 Not Found" + empty, exitFailure, "404 Not Found"},
		{"unavailable", "HTTP/1.1 503 Service Unavailable" + empty, exitFailure, "503 Service Unavailable"},
		{"cut off", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", exitFailure, "200 OK, and the response is incomplete"},
		{"more than is read", "HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + strings.Repeat("x", maxHealthBody), exitOK, "200 OK"},
		{"another protocol", "220 mail.example\r\n", exitFailure, "malformed HTTP"},
		{"nothing", "", exitFailure, "EOF"},
	} {
		code, stdout, stderr := healthOf(t, answering(t, tt.answer))
		if code != tt.code || !strings.Contains(stdout+stderr, tt.want) || strings.Contains(stdout+stderr, "\x1b") || (code == exitOK) != (stderr == "") {
			t.Errorf("%s: %d %q %q, want %d with %q", tt.why, code, stdout, stderr, tt.code, tt.want)
		}
	}
}

// A server that accepts and is silent, and one that never ends its body.
func TestHealthTimeout(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	end := make(chan struct{})
	stream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		<-end
	}))
	defer stream.Close()
	defer close(end)
	for _, where := range []string{l.Addr().String(), stream.URL} {
		code, _, stderr := inProcess(t, "health", where, "--timeout", "50ms")
		if code != exitFailure || !strings.Contains(stderr, "no complete response within 50ms") {
			t.Errorf("%d %q", code, stderr)
		}
	}
}

// What is sent: the host of URL wherever it connects to, the path, the query, a password.
func TestHealthTarget(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if got := r.Host + r.RequestURI + " " + user + password; got != "example.com/a?b alicesecret" {
			http.Error(w, got, http.StatusTeapot)
		}
	})
	ts := httptest.NewServer(handler)
	defer ts.Close()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skipf("no unix sockets: %v", err)
	}
	us := httptest.NewUnstartedServer(handler)
	us.Listener.Close()
	us.Listener = l
	us.Start()
	defer us.Close()
	address := ts.Listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	const url = "http://alice:secret@example.com/a?b#c"
	for _, at := range []string{address, port, ":" + port, "unix:" + socket} {
		code, stdout, stderr := healthOf(t, url, "--at", at)
		if code != exitOK || stdout != "http://alice:xxxxx@example.com/a?b at "+at+": 200 OK\n" {
			t.Errorf("at %s: %d %q %q", at, code, stdout, stderr)
		}
	}
	if code, _, stderr := healthOf(t, "unix:"+socket); code != exitFailure || !strings.Contains(stderr, "418") {
		t.Errorf("a unix socket: %d %q", code, stderr)
	}
	plain := strings.Replace(ts.URL, "http:", "https:", 1)
	if code, _, stderr := healthOf(t, plain); code != exitFailure ||
		stderr != "chert: "+plain+"/: the server does not speak TLS there; want a URL with http://\n" {
		t.Errorf("https to http: %d %q", code, stderr)
	}
	if code, _, stderr := healthOf(t, "unix:"+socket+"2"); code != exitFailure || !strings.HasSuffix(stderr, ": cannot connect: no such file or directory\n") {
		t.Errorf("no unix socket: %d %q", code, stderr)
	}
}

func TestHealthTLS(t *testing.T) {
	t.Parallel()
	ts := httptest.NewTLSServer(http.NotFoundHandler())
	defer ts.Close()
	ts.Config.ErrorLog = log.New(io.Discard, "", 0)
	ok := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer ok.Close()
	ok.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{ok.URL}, exitFailure, "--insecure accepts any certificate on this machine"},
		{[]string{ok.URL, "--insecure"}, exitOK, "200 OK"},
		{[]string{"https://chert.example/", "-k", "--at", ok.Listener.Addr().String()}, exitOK, "200 OK"},
		{[]string{ts.URL, "-k"}, exitFailure, "404 Not Found"},
	} {
		code, stdout, stderr := healthOf(t, tt.args...)
		if code != tt.code || !strings.Contains(stdout+stderr, tt.want) {
			t.Errorf("%q: %d %q %q, want %d with %q", tt.args, code, stdout, stderr, tt.code, tt.want)
		}
	}
}

// --insecure sends nothing to another machine: here to an address of this one that is not its loopback.
func TestHealthInsecureElsewhere(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, a := range addrs {
		ip, _, err := net.ParseCIDR(a.String())
		if err != nil || !ip.IsGlobalUnicast() {
			continue
		}
		code, _, stderr := healthOf(t, "https://"+net.JoinHostPort(ip.String(), port)+"/", "--insecure")
		if code != exitFailure || !strings.Contains(stderr, "--insecure is for servers on this machine") {
			t.Errorf("%s: %d %q", ip, code, stderr)
		}
		return
	}
	t.Skip("this machine has no address beside its loopback")
}

func TestHealthArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, want string }{
		{"a b", "one URL at most"},
		{"localhost", "has no port"},
		{"ftp://localhost/", "is no address"},
		{"8080 --timeout 0s", "must be positive"},
		{"8080 --timeout soon", "wants a time"},
		{"8080 --at http://localhost:8080/", "--at"},
		{"8080 --at localhost:8080/path", "--at"},
		{"8080 --at nowhere", "--at"},
		{"unix:/run/a --at 8080", "--at is for a URL with a host"},
	} {
		code, _, stderr := inProcess(t, append([]string{"health"}, strings.Fields(tt.args)...)...)
		if code != exitUsage || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: %d %q, want %q", tt.args, code, stderr, tt.want)
		}
	}
}

// Without an argument it asks the port that "chert serve" takes from the environment.
func TestHealthDefault(t *testing.T) {
	_, port, _ := net.SplitHostPort(answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	t.Setenv("PORT", port)
	if code, stdout, stderr := healthOf(t); code != exitOK || stdout != "http://127.0.0.1:"+port+"/: 200 OK\n" {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
}

// A real server, whose socket and site are those of a file.
func TestHealthOfServe(t *testing.T) {
	t.Parallel()
	p := start(t, folder(t, map[string]string{"index.html": "x"}), "--listen", "127.0.0.1:0")
	out, err := command(t, "health", "--timeout", patience.String(), p.urls[0]).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), ": 200 OK\n") {
		t.Errorf("%v: %s", err, out)
	}
}
