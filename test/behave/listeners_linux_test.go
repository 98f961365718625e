package behave

import (
	"syscall"
	"testing"

	"github.com/chert-http/chert"
)

// A connection that arrives between Listen and Serve inherits the options that
// the listening socket had then.
func TestListenSetsOptionsAtOnce(t *testing.T) {
	t.Parallel()
	l, err := new(chert.Server).Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := l.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for name, opt := range map[string][2]int{
		"TCP_NODELAY":  {syscall.IPPROTO_TCP, syscall.TCP_NODELAY},
		"SO_KEEPALIVE": {syscall.SOL_SOCKET, syscall.SO_KEEPALIVE},
		"SO_REUSEPORT": {syscall.SOL_SOCKET, 15},
	} {
		var v int
		if err := raw.Control(func(fd uintptr) { v, err = syscall.GetsockoptInt(int(fd), opt[0], opt[1]) }); err != nil {
			t.Fatal(err)
		}
		if v == 0 {
			t.Errorf("%s is not set", name)
		}
	}
}
