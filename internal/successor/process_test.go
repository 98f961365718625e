package successor

import (
	"net"
	"path/filepath"
	"runtime"
	"slices"
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

// A listener that was opened when the successor had been started is not the successor's, and does not hear of it; one
// that was opened when this process had been confirmed hears of that.
func TestKeptMeanwhile(t *testing.T) {
	t.Parallel()
	p := &Process{confirmed: make(chan struct{}), replaced: make(chan struct{})}
	p.Ready()
	var heard []string
	keep := func(name string) (drop func()) {
		hear := func(what string) func() { return func() { heard = append(heard, name+" "+what) } }
		return p.Keep(&Kept{Sockets: func() ([]int, error) { return nil, nil },
			Confirmed: hear("confirmed"), Replaced: hear("replaced"), Failed: hear("failed")})
	}
	keep("one")
	drop := keep("two")
	if _, _, err := p.gather(); err != nil {
		t.Fatal(err)
	}
	keep("three")
	drop()
	p.replace(1)
	want := []string{"one confirmed", "two confirmed", "three confirmed", "one replaced"}
	if !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}
