package tlsio

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"net"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// keys are one direction of a TLS 1.3 connection with TLS_AES_128_GCM_SHA256, RFC
// 8446 section 5.
type keys struct {
	t      testing.TB
	secret []byte
	aead   cipher.AEAD
	iv     []byte
	seq    uint64
}

func (k *keys) expand(label string, n int) []byte {
	k.t.Helper()
	info := binary.BigEndian.AppendUint16(nil, uint16(n))
	info = append(info, byte(len("tls13 "+label)))
	info = append(append(info, "tls13 "+label...), 0)
	b, err := hkdf.Expand(sha256.New, k.secret, string(info), n)
	if err != nil {
		k.t.Fatal(err)
	}
	return b
}

func (k *keys) set(secret []byte) {
	k.secret, k.seq = secret, 0
	block, err := aes.NewCipher(k.expand("key", 16))
	if err != nil {
		k.t.Fatal(err)
	}
	if k.aead, err = cipher.NewGCM(block); err != nil {
		k.t.Fatal(err)
	}
	k.iv = k.expand("iv", 12)
}

// update is what follows a KeyUpdate.
func (k *keys) update() { k.set(k.expand("traffic upd", 32)) }

func (k *keys) nonce() []byte {
	n := bytes.Clone(k.iv)
	for i, b := range binary.BigEndian.AppendUint64(nil, k.seq) {
		n[4+i] ^= b
	}
	k.seq++
	return n
}

// seal makes a record of the given inner type.
func (k *keys) seal(kind byte, p string) []byte {
	n := len(p) + 1 + k.aead.Overhead()
	hdr := []byte{23, 3, 3, byte(n >> 8), byte(n)}
	return k.aead.Seal(bytes.Clone(hdr), k.nonce(), append([]byte(p), kind), hdr)
}

// open gives what the records have inside, as "type:content" each.
func (k *keys) open(b []byte) (all []string) {
	k.t.Helper()
	for len(b) > 0 {
		n := headerSize + int(binary.BigEndian.Uint16(b[3:]))
		p, err := k.aead.Open(nil, k.nonce(), b[headerSize:n], b[:headerSize])
		if err != nil {
			k.t.Fatal(err)
		}
		b = b[n:]
		all = append(all, map[byte]string{21: "alert", 22: "handshake", 23: "data"}[p[len(p)-1]]+":"+string(p[:len(p)-1]))
	}
	return all
}

// records is a server's layer, and the keys of its client.
func records(t testing.TB) (l conn.Layer, client, server *keys) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	w := new(wire)
	w.over(a, nil)
	w.tc = tls.Server(w, &tls.Config{Certificates: []tls.Certificate{certificate(t)}, SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true})
	var log strings.Builder
	tc := tls.Client(b, &tls.Config{InsecureSkipVerify: true, KeyLogWriter: &log})
	done := make(chan error, 1)
	go func() { done <- w.tc.Handshake() }()
	if err := tc.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := servertest.Await(t, done, "the handshake"); err != nil {
		t.Fatal(err)
	}
	if id := tc.ConnectionState().CipherSuite; id != tls.TLS_AES_128_GCM_SHA256 {
		t.Skip("another cipher suite: ", tls.CipherSuiteName(id))
	}
	side := func(label string) *keys {
		_, line, _ := strings.Cut(log.String(), label+" ")
		line, _, _ = strings.Cut(line, "\n")
		_, secret, _ := strings.Cut(line, " ")
		b, err := hex.DecodeString(secret)
		if err != nil || len(b) != 32 {
			t.Fatalf("key log: %q", log.String())
		}
		k := &keys{t: t}
		k.set(b)
		return k
	}
	return w.asLayer(), side("CLIENT_TRAFFIC_SECRET_0"), side("SERVER_TRAFFIC_SECRET_0")
}
