package successor

import (
	"net"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// The service manager hears that the process is ready before anything that waits for that can tell it more.
func TestReadyBeforeConfirmed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no sockets of datagrams in files")
	}
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	p := &Process{confirmed: make(chan struct{}), replaced: make(chan struct{})}
	var said [100]byte
	n := 0
	p.Keep(&Kept{Confirmed: func() {
		manager.SetReadDeadline(time.Now().Add(time.Second)) // it is there, or never
		n, err = manager.Read(said[:])
	}})
	p.Ready()
	if err != nil || string(said[:n]) != "READY=1" {
		t.Errorf("before it is confirmed the service manager has heard %q, %v", said[:n], err)
	}
	<-p.Confirmed()
}
