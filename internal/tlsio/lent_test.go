package tlsio

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// notInside fails if anything in l's tls.Conn points into b. It does not see what
// closures and channels have.
func notInside(t testing.TB, l conn.Layer, b []byte) {
	t.Helper()
	w := (*wire)(l.(*layer))
	if !w.lends || len(b) == 0 {
		return
	}
	s := search{from: uintptr(unsafe.Pointer(&b[0])), seen: make(map[visit]bool)}
	s.to = s.from + uintptr(len(b))
	s.look(reflect.ValueOf(w.tc), "tls.Conn")
	if len(s.found) > 0 {
		t.Errorf("the record is kept in %v", s.found)
	}
}

type search struct {
	from, to uintptr
	seen     map[visit]bool
	found    []string
}

type visit struct {
	p uintptr
	t reflect.Type
}

func (s *search) look(v reflect.Value, path string) {
	at := uintptr(0)
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice:
		at = v.Pointer()
	case reflect.String:
		at = uintptr(unsafe.Pointer(unsafe.StringData(v.String())))
	}
	if s.from <= at && at < s.to {
		s.found = append(s.found, path)
	}
	switch v.Kind() {
	case reflect.Pointer:
		k := visit{at, v.Type()}
		// What is shared by all connections does not point into one's records, and is large.
		if _, ok := v.Type().MethodByName("BuildNameToCertificate"); at != 0 && !ok && !s.seen[k] {
			s.seen[k] = true
			s.look(v.Elem(), path)
		}
	case reflect.Interface:
		if !v.IsNil() {
			s.look(v.Elem(), path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() == reflect.TypeFor[wire]() && v.Type().Field(i).Name != "out" {
				continue
			}
			s.look(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice, reflect.Array:
		if k := v.Type().Elem().Kind(); k >= reflect.Bool && k <= reflect.Complex128 {
			return
		}
		for i := range v.Len() {
			s.look(v.Index(i), path)
		}
	case reflect.Map:
		for i := v.MapRange(); i.Next(); {
			s.look(i.Key(), path)
			s.look(i.Value(), path)
		}
	}
}

// The search finds what is there.
func TestSearch(t *testing.T) {
	t.Parallel()
	if !lends() {
		t.Skip("nothing is lent with this version of Go")
	}
	b := make([]byte, 100)
	tc := tls.Server(nil, &tls.Config{})
	if !lend(tc, b) {
		t.Fatal("it was not lent")
	}
	s := search{from: uintptr(unsafe.Pointer(&b[0])), seen: make(map[visit]bool)}
	s.to = s.from + uintptr(len(b))
	s.look(reflect.ValueOf(tc), "tls.Conn")
	if len(s.found) != 1 || s.found[0] != "tls.Conn.rawInput.buf" {
		t.Errorf("found %q", s.found)
	}
	if left := takeBack(tc); left != len(b) {
		t.Errorf("%d bytes were left", left)
	}
}

// Nothing that was lent is kept, whatever the version, the cipher and the client's
// certificate. feed looks; the tests of records have it look after messages too.
func TestNothingPointsIntoLent(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]uint16{"1.0": tls.VersionTLS10, "1.1": tls.VersionTLS11, "1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		for _, suite := range []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256, tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA} {
			if version < tls.VersionTLS12 && suite != tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA && suite != tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA {
				continue
			}
			a, b := net.Pipe()
			w := new(wire)
			w.over(a, nil)
			cfg := &tls.Config{Certificates: []tls.Certificate{certificate(t)}, MinVersion: tls.VersionTLS10, MaxVersion: version, CipherSuites: []uint16{suite}, ClientAuth: tls.RequestClientCert, SessionTicketsDisabled: true}
			w.tc = tls.Server(w, cfg)
			sent := &recorder{Conn: b}
			tc := tls.Client(sent, &tls.Config{InsecureSkipVerify: true, Certificates: cfg.Certificates, MinVersion: tls.VersionTLS10, CipherSuites: cfg.CipherSuites})
			done := make(chan error, 1)
			go func() { done <- w.tc.Handshake() }()
			if err := tc.Handshake(); err != nil {
				t.Fatal(err)
			}
			if err := servertest.Await(t, done, "the handshake"); err != nil {
				t.Fatal(err)
			}
			a.Close()
			l := w.asLayer()
			sent.keep = true
			for _, p := range []string{"a", strings.Repeat("x", maxPlain), "b"} {
				io.WriteString(tc, p)
				got, err := feed(t, l, sent.take(), 1<<20)
				if got != p || err != nil {
					t.Fatalf("%s: %d bytes, %v", name, len(got), err)
				}
			}
			tc.CloseWrite()
			if _, err := feed(t, l, sent.take(), 1<<20); err != io.EOF {
				t.Errorf("%s: the end is %v", name, err)
			}
			b.Close()
		}
	}
}

// recorder keeps what is written.
type recorder struct {
	net.Conn
	keep bool
	b    []byte
}

func (r *recorder) Write(p []byte) (int, error) {
	if !r.keep {
		return r.Conn.Write(p)
	}
	r.b = append(r.b, p...)
	return len(p), nil
}

func (r *recorder) take() []byte {
	b := r.b
	r.b = nil
	return b
}

// The same of a client, whose server sends tickets: neither the tls.Conn nor the session that is kept
// points into them.
func TestNothingPointsIntoLentOfServer(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		listener := servertest.ListenTCP(t)
		nc, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		b, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		a := &recordReader{Conn: nc, r: bufio.NewReader(nc)}
		w := new(wire)
		w.over(a, nil)
		cache := tls.NewLRUClientSessionCache(1)
		w.tc = tls.Client(w, &tls.Config{InsecureSkipVerify: true, ServerName: "example.com", ClientSessionCache: cache, MaxVersion: version})
		server := tls.Server(b, &tls.Config{Certificates: []tls.Certificate{certificate(t)}})
		done := make(chan error, 1)
		go func() {
			_, err := io.WriteString(server, "hello") // after the handshake, and with TLS 1.3 after a ticket
			b.Close()
			done <- err
		}()
		if err := w.tc.Handshake(); err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(a.r)
		if err := servertest.Await(t, done, "the server"); err != nil {
			t.Fatal(err)
		}
		l := w.asLayer()
		if got, err := feed(t, l, raw, 1<<20); got != "hello" || err != nil {
			t.Errorf("%s: got %q, %v", tls.VersionName(version), got, err)
		}
		if _, ok := cache.Get("example.com"); !ok {
			t.Errorf("%s: no session was kept", tls.VersionName(version))
		}
		if len(raw) == 0 {
			continue
		}
		s := search{from: uintptr(unsafe.Pointer(&raw[0])), seen: make(map[visit]bool)}
		s.to = s.from + uintptr(len(raw))
		if s.look(reflect.ValueOf(cache), "cache"); len(s.found) > 0 {
			t.Errorf("%s: the record is kept in %v", tls.VersionName(version), s.found)
		}
	}
}

// recordReader is read up to the end of a record at a time, as the Link of a handshake is.
type recordReader struct {
	net.Conn
	r    *bufio.Reader
	left int
}

func (c *recordReader) Read(p []byte) (int, error) {
	if c.left == 0 {
		head, err := c.r.Peek(headerSize)
		if err != nil {
			return 0, err
		}
		c.left = headerSize + int(binary.BigEndian.Uint16(head[3:]))
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
