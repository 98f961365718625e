package h2_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

// kinds are the ways to serve: both engines in plain text and over TLS, and net/http's
// server, the oracle.
var kinds = func() []string {
	all := []string{"goroutines", "tlsgo", "oracle"}
	if sys.HavePoller {
		all = append(all, "loops", "pooled", "inline", "tls")
	}
	return all
}()

// server is what chert.Server and http.Server are to these tests.
type server interface {
	Serve(net.Listener) error
	ServeTLS(l net.Listener, cert, key string) error
	Shutdown(context.Context) error
	Close() error
}

type running struct {
	t    testing.TB
	kind string
	addr string
	server
	log *logBuffer
}

func (r *running) overTLS() bool { return strings.HasPrefix(r.kind, "tls") }

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// each runs f for every kind of server, but for those that are left out.
func each(t *testing.T, without string, f func(t *testing.T, kind string)) {
	t.Helper()
	for _, kind := range kinds {
		if strings.Contains(without, strings.TrimSuffix(kind, "go")) {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f(t, kind)
		})
	}
}

// serve starts s as kind says.
func serve(t testing.TB, kind string, s *chert.Server) *running {
	t.Helper()
	r := &running{t: t, kind: kind, log: new(logBuffer)}
	s.ErrorLog = log.New(r.log, "", 0)
	if s.Protocols == nil {
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetHTTP2(true)
		s.Protocols.SetUnencryptedHTTP2(true)
	}
	switch kind {
	case "goroutines", "tlsgo":
		s.Engine = chert.EngineGoroutines
	case "tls":
		s.Engine = chert.EngineLoops
	case "loops", "pooled", "inline":
		s.Engine = chert.EngineLoops
		s.Placement = map[string]chert.Placement{"loops": chert.PlacementAdaptive, "pooled": chert.PlacementPooled, "inline": chert.PlacementInline}[kind]
	}
	r.server = s
	if kind == "oracle" {
		r.server = &http.Server{
			Handler: s.Handler, Protocols: s.Protocols, HTTP2: s.HTTP2, ErrorLog: s.ErrorLog, ConnState: s.ConnState,
			ReadTimeout: s.ReadTimeout, WriteTimeout: s.WriteTimeout, MaxHeaderBytes: s.MaxHeaderBytes, IdleTimeout: s.IdleTimeout,
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	ended := make(chan error, 1)
	if r.overTLS() {
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate()}}
		go func() { ended <- s.ServeTLS(l, "", "") }()
	} else {
		go func() { ended <- r.server.Serve(l) }()
	}
	t.Cleanup(func() {
		r.Close()
		if err := servertest.Await(t, ended, "Serve"); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
		if s, ok := r.server.(*chert.Server); ok {
			ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
			defer cancel()
			if err := s.Shutdown(ctx); err != nil {
				t.Errorf("after Close: %v", err)
			}
		}
	})
	return r
}

var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// client is net/http's, over HTTP/2.
func (r *running) client() *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true}
	tr.Protocols.SetUnencryptedHTTP2(!r.overTLS())
	tr.Protocols.SetHTTP2(r.overTLS())
	r.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: servertest.Patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (r *running) url(path string) string {
	if r.overTLS() {
		return "https://" + r.addr + path
	}
	return "http://" + r.addr + path
}

// raw is a client that writes frames by hand.
type raw struct {
	net.Conn
	t   testing.TB
	fr  *http2.Framer
	out bytes.Buffer // what fr has written and was not sent
	enc *hpack.Encoder
	blk bytes.Buffer
	dec *hpack.Decoder
	// opened is by how much the server has opened the connection's window, as far as next has read.
	opened int
}

func (r *running) dial() net.Conn {
	r.t.Helper()
	nc, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.overTLS() {
		nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	}
	nc.SetDeadline(time.Now().Add(servertest.Patience))
	r.t.Cleanup(func() { nc.Close() })
	return nc
}

// bare is a raw client that has sent nothing yet.
func (r *running) bare() *raw { return r.over(r.dial()) }

func (r *running) over(nc net.Conn) *raw {
	c := &raw{Conn: nc, t: r.t}
	c.fr = http2.NewFramer(&c.out, c.Conn)
	c.fr.AllowIllegalWrites = true
	c.fr.AllowIllegalReads = true
	c.enc = hpack.NewEncoder(&c.blk)
	c.dec = hpack.NewDecoder(4096, nil)
	return c
}

// raw is one that has sent its preface.
func (r *running) raw(settings ...http2.Setting) *raw {
	c := r.bare()
	c.out.WriteString(http2.ClientPreface)
	c.fr.WriteSettings(settings...)
	c.fr.WriteSettingsAck()
	c.send()
	return c
}

// send sends what was written.
func (c *raw) send() {
	c.t.Helper()
	p := bytes.Clone(c.out.Bytes())
	c.out.Reset()
	c.SetDeadline(time.Now().Add(servertest.Patience)) // as in next
	if _, err := c.Write(p); err != nil {
		c.t.Logf("send: %v", err) // it may have been closed; what comes back tells
	}
}

// block encodes fields, "name: value" each.
func (c *raw) block(fields ...string) []byte {
	c.blk.Reset()
	for _, f := range fields {
		i := strings.Index(f[1:], ":") + 1
		c.enc.WriteField(hpack.HeaderField{Name: f[:i], Value: strings.TrimPrefix(f[i+1:], " ")})
	}
	return bytes.Clone(c.blk.Bytes())
}

var get = []string{":method: GET", ":scheme: http", ":authority: example.com", ":path: /"}
var post = []string{":method: POST", ":scheme: http", ":authority: example.com", ":path: /"}

func with(fields []string, more ...string) []string {
	return append(append([]string(nil), fields...), more...)
}

// path is fields with another path.
func path(fields []string, p string) []string { return with(fields[:3], ":path: "+p) }

// headers writes a HEADERS frame.
func (c *raw) headers(id uint32, end bool, fields ...string) {
	c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block(fields...), EndStream: end, EndHeaders: true})
}

// answer is what has come on a stream.
type answer struct {
	fields  []string
	blocks  int
	body    string
	end     bool
	reset   string
	goaway  string
	lastID  uint32
	closed  bool
	pings   int
	interim []string
}

func (a answer) status() string {
	if len(a.fields) == 0 {
		return ""
	}
	return strings.TrimPrefix(a.fields[0], ":status: ")
}

func (a answer) field(name string) string {
	for _, f := range a.fields {
		if v, ok := strings.CutPrefix(f, name+": "); ok {
			return v
		}
	}
	return ""
}

// outcome is how a stream, or the connection, has ended.
func (a answer) outcome() string {
	switch {
	case a.goaway != "" && a.goaway != "NO_ERROR":
		return "GOAWAY " + a.goaway
	case a.reset != "" && a.reset != "NO_ERROR":
		return "RST " + a.reset
	case a.end:
		return a.status()
	case a.closed:
		return "closed"
	}
	return "nothing"
}

// next reads a frame, nil at the end.
func (c *raw) next() http2.Frame {
	c.SetDeadline(time.Now().Add(servertest.Patience)) // for all of a test it would be short on a busy machine
	f, err := c.fr.ReadFrame()
	if err != nil {
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			c.t.Fatal("nothing has come for too long")
		}
		return nil
	}
	if w, ok := f.(*http2.WindowUpdateFrame); ok && w.StreamID == 0 {
		c.opened += int(w.Increment)
	}
	return f
}

// read reads up to the end of a stream, or of the connection. Windows are not refilled.
func (c *raw) read(id uint32) (a answer) {
	c.t.Helper()
	for !a.end && a.reset == "" {
		f := c.next()
		if f == nil {
			a.closed = true
			return a
		}
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			a.goaway, a.lastID = f.ErrCode.String(), f.LastStreamID
		case *http2.RSTStreamFrame:
			if f.StreamID == id {
				a.reset = f.ErrCode.String()
			}
		case *http2.HeadersFrame:
			all, err := c.dec.DecodeFull(f.HeaderBlockFragment())
			if err != nil {
				c.t.Fatal(err)
			}
			if f.StreamID != id {
				continue
			}
			a.blocks++
			var fields []string
			for _, h := range all {
				fields = append(fields, h.Name+": "+h.Value)
			}
			if len(fields) > 0 && strings.HasPrefix(fields[0], ":status: 1") {
				a.interim = append(a.interim, fields[0])
			} else {
				a.fields = append(a.fields, fields...)
			}
			a.end = f.StreamEnded()
		case *http2.DataFrame:
			if f.StreamID == id {
				a.body += string(f.Data())
				a.end = f.StreamEnded()
			}
		case *http2.PingFrame:
			a.pings++
		}
	}
	return a
}

// get makes a request and reads its answer.
func (c *raw) get(id uint32, p string) answer {
	c.t.Helper()
	c.headers(id, true, path(get, p)...)
	c.send()
	return c.read(id)
}

type hf = http.HandlerFunc

func hello(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }

// tool is the path of a program, of a package of Debian's, without which the test is
// skipped.
func tool(t *testing.T, name, pkg string) string {
	t.Helper()
	p, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatalf("%s is not installed; the Debian package is %s", name, pkg)
		}
		t.Skipf("%s is not installed; the Debian package is %s", name, pkg)
	}
	return p
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprint(err))
	}
	return v
}
