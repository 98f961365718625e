package conntest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"testing"
)

// What one side seals the other opens, fed in pieces of any size.
func TestLayer(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, pieces := range []int{1, 2, 3, 199, 1000, 1 << 20} {
		a, b := NewLayer(), NewLayer()
		var plain, sealed, opened []byte
		for range 100 {
			p := make([]byte, rnd.IntN(1000))
			for i := range p {
				p[i] = byte(rnd.IntN(256))
			}
			plain = append(plain, p...)
			sealed = a.Seal(sealed, p)
		}
		if bytes.Contains(sealed, plain[:20]) {
			t.Error("the plaintext shows")
		}
		sealed = a.Close(sealed)
		var src []byte
		var err error
		for len(sealed) > 0 && err == nil {
			n := min(pieces, len(sealed))
			src, sealed = append(src, sealed[:n]...), sealed[n:]
			var used int
			opened, used, err = b.Open(opened, src)
			src = src[used:]
		}
		if err != io.EOF || !bytes.Equal(opened, plain) || len(src) > 0 {
			t.Errorf("pieces of %d: %v, %d of %d bytes, %d left", pieces, err, len(opened), len(plain), len(src))
		}
	}
}

// Records that are lost or come twice do not open to what was sealed.
func TestLayerOrder(t *testing.T) {
	t.Parallel()
	a := NewLayer()
	first := a.Seal(nil, []byte("one"))
	first = first[:2+int(first[1])]
	for name, src := range map[string][]byte{
		"doubled": append(bytes.Clone(first), first...),
		"lost":    a.Seal(nil, []byte("two")),
	} {
		out, _, _ := NewLayer().Open(nil, src)
		if s := string(out); s == "oneone" || s == "two" {
			t.Errorf("%s: %q", name, out)
		}
	}
	if _, _, err := NewLayer().Open(nil, []byte{255, 255, 0}); err != errRecord {
		t.Errorf("too long: %v", err)
	}
}

func TestLayerConn(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	client, server := NewLayer().Over(a, nil), NewLayer().Over(b, nil)
	msg := bytes.Repeat([]byte("chert "), 10_000)
	go func() {
		client.Write(msg)
		client.Close()
	}()
	got, err := io.ReadAll(server)
	if err != nil || !bytes.Equal(got, msg) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	server.Close()
	// Cut off, without a last record.
	a, b = net.Pipe()
	server = NewLayer().Over(b, NewLayer().Seal(nil, []byte("x")))
	a.Close()
	if got, err := io.ReadAll(server); string(got) != "x" || err != io.ErrUnexpectedEOF {
		t.Errorf("got %q, %v", got, err)
	}
	server.Close()
}
