package middleware

import (
	"encoding/hex"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/chertest"
)

// attackReaders is the number of clients of TestCompressAttack that do not read.
const attackReaders = 200

// TestCompressAttack measures the cost of clients that request a compressed
// response and do not read it. It does not assert a figure, so it runs only if
// CHERT_ATTACK is set:
//
//	CHERT_ATTACK=1 go test -run CompressAttack -v ./middleware
func TestCompressAttack(t *testing.T) {
	if os.Getenv("CHERT_ATTACK") == "" {
		t.Skip("CHERT_ATTACK is not set")
	}
	for _, name := range []string{"identity", "gzip", "br", "zstd"} {
		t.Run(name, func(t *testing.T) { attackCompress(t, name) })
	}
}

func attackCompress(t *testing.T, name string) {
	var whole atomic.Bool
	s := chertest.NewServer(Must(Compress(nil))(hf(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		// Hexadecimal digits of noise: half as long when they are compressed, so
		// sockets fill soon.
		source, noise := rand.NewChaCha8([32]byte{}), make([]byte, 4<<10)
		for range 4 << 10 { // 32 MiB
			source.Read(noise)
			if _, err := w.Write(hex.AppendEncode(nil, noise)); err != nil {
				return
			}
		}
		whole.Store(true)
	})))
	defer s.Close()
	before := heapInUse()
	for range attackReaders {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.(*net.TCPConn).SetReadBuffer(4 << 10)
		if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: " + name + "\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	// They are stalled when memory does not grow any more.
	last, same := uint64(0), 0
	for deadline := time.Now().Add(time.Minute); same < 5 && time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		now := heapInUse()
		if now <= last+last/50 {
			same++
		} else {
			same = 0
		}
		last = max(last, now)
	}
	if whole.Load() {
		t.Error("a response was sent whole: nothing was stalled")
	}
	t.Logf("%s: %d readers that do not read: heap %d MiB more, %d KiB each", name, attackReaders, (last-before)>>20, (last-before)>>10/attackReaders)
}

// heapInUse returns the bytes in use after a garbage collection.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // what pools keep goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
