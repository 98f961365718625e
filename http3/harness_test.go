package http3_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/chert-http/chert"
	chert3 "github.com/chert-http/chert/http3"
	codec "github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/pack"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/http3client"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

type hf = http.HandlerFunc

func hello(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }

// running is a server under test.
type running struct {
	*chert.Server
	t    testing.TB
	addr string
	log  *servertest.Log
}

// serve starts s, and waits for its end when the test ends.
func serve(t testing.TB, s *chert.Server) *running {
	t.Helper()
	cert, _ := servertest.Certificate(t)
	r := &running{Server: s, t: t, log: new(servertest.Log)}
	if s.HTTP3 == nil {
		s.HTTP3 = chert3.New(nil)
	}
	s.ErrorLog = log.New(r.log, "", 0)
	if s.TLSConfig == nil {
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
	}
	l := listen(t, s)
	r.addr = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- s.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		s.Close()
		if err := servertest.Await(t, done, "Serve"); !errors.Is(err, chert.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("after Close: %v", err)
		}
	})
	return r
}

// at is r for a subtest.
func (r *running) at(t testing.TB) *running { return &running{r.Server, t, r.addr, r.log} }

// listen listens on a port that is free for UDP too.
func listen(t testing.TB, s *chert.Server) net.Listener {
	t.Helper()
	l, err := s.Listen("tcp", freeport.Both(t))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// dialer is a socket of clients.
func dialer(t testing.TB) *quic.Transport {
	t.Helper()
	u, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	tr := &quic.Transport{Conn: u}
	t.Cleanup(func() {
		tr.Close()
		u.Close()
	})
	return tr
}

// client is quic-go's.
func (r *running) client() *http.Client {
	d := dialer(r.t)
	tr := &http3.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true,
		Dial: func(ctx context.Context, addr string, of *tls.Config, o *quic.Config) (*quic.Conn, error) {
			to, err := net.ResolveUDPAddr("udp", addr)
			if err != nil {
				return nil, err
			}
			return d.Dial(ctx, to, of, o)
		},
	}
	r.t.Cleanup(func() { tr.Close() })
	return &http.Client{
		Transport: http3client.Transport{Transport: tr}, Timeout: servertest.Patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (r *running) url(path string) string { return "https://" + r.addr + path }

// raw is a client that writes frames by hand.
type raw struct {
	*quic.Conn
	t       testing.TB
	control *quic.SendStream
}

// bare is a raw client that has sent nothing yet. o may be nil.
func (r *running) bare(o *quic.Config) *raw {
	r.t.Helper()
	c, err := r.tryDial(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func clientTLS() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}}
}

// tryDial is bare for a connection that may be refused.
func (r *running) tryDial(o *quic.Config) (*raw, error) {
	to, err := net.ResolveUDPAddr("udp", r.addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
	defer cancel()
	c, err := dialer(r.t).Dial(ctx, to, clientTLS(), o)
	if err != nil {
		return nil, err
	}
	r.t.Cleanup(func() { c.CloseWithError(0x100, "") })
	return &raw{Conn: c, t: r.t}, nil
}

// raw is one that has sent SETTINGS.
func (r *running) raw(settings ...codec.Setting) *raw {
	c := r.bare(nil)
	c.control = c.uni(codec.StreamControl, codec.AppendSettings(nil, settings...))
	return c
}

// shaken is raw for a server whose limit for handshakes is so short that a busy machine exceeds it: it tries until the
// server has answered.
func (r *running) shaken() (c *raw) {
	r.t.Helper()
	servertest.Eventually(r.t, "a handshake in time", func() bool {
		var err error
		if c, err = r.tryDial(nil); err != nil {
			return false
		}
		c.control = c.uni(codec.StreamControl, codec.AppendSettings(nil))
		return c.get("/").err == nil
	})
	return c
}

// uni opens a unidirectional stream of a type.
func (c *raw) uni(t codec.StreamType, p []byte) *quic.SendStream {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), servertest.Patience)
	defer cancel()
	str, err := c.OpenUniStreamSync(ctx)
	if err != nil {
		c.t.Logf("uni: %v", err) // what comes back tells
		return nil
	}
	str.Write(append(codec.AppendVarint(nil, uint64(t)), p...))
	return str
}

// exchange is one request and what has come of its answer.
type exchange struct {
	*quic.Stream
	c *raw
}

// open opens a stream and sends parts of a request on it. end: they are all.
func (c *raw) open(end bool, parts ...[]byte) *exchange {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), servertest.Patience)
	defer cancel()
	str, err := c.OpenStreamSync(ctx)
	if err != nil {
		c.t.Logf("open: %v", err)
		return &exchange{c: c}
	}
	e := &exchange{str, c}
	e.SetDeadline(time.Now().Add(servertest.Patience))
	for _, p := range parts {
		e.Write(p)
	}
	if end {
		e.Close()
	}
	return e
}

// fields encodes "name: value" pairs as literals, whatever they are.
func fields(all ...string) []byte {
	b := codec.AppendPrefix(nil)
	for _, f := range all {
		i := strings.Index(f[1:], ":") + 1
		name, value := f[:i], strings.TrimPrefix(f[i+1:], " ")
		b = append(pack.AppendInteger(b, 0x20, 3, uint(len(name))), name...)
		b = append(pack.AppendInteger(b, 0, 7, uint(len(value))), value...)
	}
	return b
}

// frame is a frame of a type.
func frame(t codec.FrameType, p []byte) []byte {
	return append(codec.AppendHeader(nil, t, len(p)), p...)
}

func headers(all ...string) []byte { return frame(codec.FrameHeaders, fields(all...)) }
func data(p string) []byte         { return frame(codec.FrameData, []byte(p)) }

var (
	get  = []string{":method: GET", ":scheme: https", ":authority: example.com", ":path: /"}
	post = []string{":method: POST", ":scheme: https", ":authority: example.com", ":path: /"}
)

func with(all []string, more ...string) []string {
	return append(append([]string(nil), all...), more...)
}

func path(all []string, p string) []string { return with(all[:3], ":path: "+p) }

// without is all but the fields of a name.
func without(all []string, name string) (rest []string) {
	for _, f := range all {
		if !strings.HasPrefix(f, name+":") {
			rest = append(rest, f)
		}
	}
	return rest
}

// answer is what has come on a stream.
type answer struct {
	fields  []string
	interim []string
	trailer []string
	body    string
	err     error // nil at the end of the stream
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

// ending says how a stream, or the connection, has ended: the status of an answer that is whole,
// or an error's code.
func (a answer) ending() string {
	if a.err == nil {
		return a.status()
	}
	return ending(a.err)
}

func ending(err error) string {
	var reset *quic.StreamError
	var closed *quic.ApplicationError
	switch {
	case errors.As(err, &reset):
		return "RESET " + codec.ErrCode(reset.ErrorCode).String()
	case errors.As(err, &closed) && closed.Remote:
		return "CLOSE " + codec.ErrCode(closed.ErrorCode).String()
	}
	return fmt.Sprint(err)
}

// read reads an answer to its end.
func (e *exchange) read() (a answer) {
	e.c.t.Helper()
	if e.Stream == nil {
		a.err = context.Cause(e.c.Context())
		return a
	}
	for {
		e.SetReadDeadline(time.Now().Add(servertest.Patience))
		h, p, err := e.next()
		if err == io.EOF {
			return a
		}
		if err != nil {
			if servertest.IsTimeout(err) {
				e.c.t.Fatal("nothing has come for too long")
			}
			a.err = err
			return a
		}
		switch h.Type {
		case codec.FrameHeaders:
			got := decode(e.c.t, p)
			switch {
			case strings.HasPrefix(got[0], ":status: 1"):
				a.interim = append(a.interim, got...)
			case a.fields == nil:
				a.fields = got
			default:
				a.trailer = got
			}
		case codec.FrameData:
			a.body += string(p)
		default:
			e.c.t.Errorf("a frame of type %d", h.Type)
		}
	}
}

// next reads a frame.
func (e *exchange) next() (h codec.Header, p []byte, err error) {
	var r codec.Reader
	var b [1]byte
	for {
		if _, err := io.ReadFull(e.Stream, b[:]); err != nil {
			return h, nil, err
		}
		if part, _ := r.Next(b[:]); part == codec.PartHeader {
			break
		}
	}
	p = make([]byte, r.Header().Length)
	_, err = io.ReadFull(e.Stream, p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return r.Header(), p, err
}

func decode(t testing.TB, p []byte) (all []string) {
	t.Helper()
	var f pack.Fields
	if err := codec.Decode(p, &f, pack.Limits{Bytes: 1 << 20, Fields: 1000}); err != nil || f.Malformed {
		t.Fatalf("%x: %v", p, err)
	}
	for i := range f.List {
		h := &f.List[i]
		name := h.ID.Name()
		if h.ID == 0 {
			name = string(f.Get(h.Name))
		}
		all = append(all, name+": "+string(f.Get(h.Value)))
	}
	return all
}

// do makes a request and reads its answer.
func (c *raw) do(parts ...[]byte) answer {
	c.t.Helper()
	return c.open(true, parts...).read()
}

func (c *raw) get(p string) answer {
	c.t.Helper()
	return c.do(headers(path(get, p)...))
}

// ended waits for the connection's end and says how it was.
func (c *raw) ended() string {
	c.t.Helper()
	servertest.WaitDone(c.t, c.Context(), "the connection has ended")
	return ending(context.Cause(c.Context()))
}
