package acme

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert/internal/testing/redistest"
)

// Connections that fail do not make a certificate vanish that another instance has stored.
func TestExistsRepeats(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var cuts atomic.Int32
	go relay(l, srv.Addr, &cuts)
	url := "redis://" + l.Addr().String()
	one, err := newRedisStorage(url, [32]byte{1}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer one.client.Close()
	other, err := newRedisStorage(url, [32]byte{1}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer other.client.Close()
	const name = "certificates/ca/a.example.com/a.example.com.crt"
	if err := one.Store(t.Context(), name, []byte("certificate")); err != nil {
		t.Fatal(err)
	}
	for n := range existsTries {
		cuts.Store(int32(n))
		if !other.Exists(t.Context(), name) {
			t.Errorf("denied after %d failures", n)
		}
		if left := cuts.Load(); left > 0 {
			t.Errorf("%d of %d connections were not cut", left, n)
		}
	}
	cuts.Store(existsTries)
	if other.Exists(t.Context(), name) {
		t.Error("found while Redis was away, in a folder that does not have it")
	}
	cuts.Store(existsTries)
	if !one.Exists(t.Context(), name) {
		t.Error("not found in the folder while Redis was away")
	}
}

// A value that Redis has is stored, though the folder cannot have it.
func TestStoreWithoutFolder(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "file") // in place of the folder: no name can be made in it
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := newRedisStorage("redis://"+srv.Addr, [32]byte{1}, file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.client.Close()
	if err := s.Store(t.Context(), "a/b", []byte("value")); err != nil {
		t.Error(err)
	}
	if got, err := s.Load(t.Context(), "a/b"); err != nil || string(got) != "value" {
		t.Errorf("%q %v", got, err)
	}
}

// relay passes connections on to addr, and cuts as many as cuts says at the command HKEYS.
func relay(l net.Listener, addr string, cuts *atomic.Int32) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			up, err := net.Dial("tcp", addr)
			if err != nil {
				return
			}
			defer up.Close()
			go io.Copy(c, up)
			b := make([]byte, 4096)
			for {
				n, err := c.Read(b)
				if err != nil || bytes.Contains(bytes.ToUpper(b[:n]), []byte("HKEYS")) && cuts.Add(-1) >= 0 {
					return
				}
				if _, err := up.Write(b[:n]); err != nil {
					return
				}
			}
		}()
	}
}
