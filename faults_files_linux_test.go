package chert

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"
)

// The process runs out of descriptors: the server neither spins nor floods its
// log, tells those who wait 503 (loops have a reserve for that; a listener that
// is not a socket can only pause), keeps what it has, and goes on when
// descriptors come back.
func TestFaultsOutOfDescriptors(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		c := startChild(t, "TestFaultsChildDescriptors", fmt.Sprint(int(e)))
		fs := &faultServer{testServer: &testServer{t: t, addr: c.addr}}
		// The one gives way at once, the others have requests on the way.
		idle, kept := fs.dial(), fs.dial()
		idle.send(faultGet)
		idle.status(200)
		kept.send(faultGet + faultGet[:1])
		kept.status(200)
		fmt.Fprintln(c.in, "exhaust")
		c.line("exhausted")
		var waiting *faultConn
		if e == EngineGoroutines {
			waiting = fs.dial()
			waiting.send(faultGet)
		} else {
			// It takes the last descriptor, and does not give way to nobody.
			first := fs.dial()
			idle.closed()
			first.send(faultGet + faultGet[:1])
			first.status(200)
			for range 5 {
				fs.dial().refusedPlace()
			}
		}
		kept.send(faultGet[1:] + faultGet[:1])
		kept.status(200)
		// Long enough for many tries.
		fmt.Fprintln(c.in, "wait")
		c.line("waited")
		fmt.Fprintln(c.in, "release")
		c.line("released")
		if waiting != nil {
			waiting.status(200)
		}
		eventually(t, "the server accepts again", func() bool {
			n := fs.dial()
			defer n.Close()
			if _, err := io.WriteString(n, faultGet); err != nil {
				return false
			}
			res, err := http.ReadResponse(n.r, nil)
			return err == nil && res.StatusCode == 200
		})
		kept.send(faultGet[1:])
		kept.status(200)
		c.in.Close()
		c.ends()
	})
}

func TestFaultsChildDescriptors(t *testing.T) {
	e, ok := childEngine()
	if !ok {
		t.Skip("a part of TestFaultsOutOfDescriptors")
	}
	limit := syscall.Rlimit{Cur: 256, Max: 256}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	ts := start(t, &Server{Engine: e, Handler: faultOK, MaxConns: -1})
	fmt.Println("addr", ts.addr)
	in := bufio.NewScanner(os.Stdin)
	var taken []int
	begin := time.Now()
	for in.Scan() {
		switch in.Text() {
		case "exhaust":
			for {
				fd, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
				if err != nil {
					break
				}
				taken = append(taken, fd)
			}
			fmt.Println("exhausted")
		case "wait":
			time.Sleep(1500 * time.Millisecond) // time in which a spin would show
			fmt.Println("waited")
		case "release":
			for _, fd := range taken {
				syscall.Close(fd)
			}
			fmt.Println("released")
		}
	}
	// One line a second, and the first.
	n := countLines(ts.log.String(), "too many open files")
	if most := int(time.Since(begin)/time.Second) + 2; n < 1 || n > most {
		t.Errorf("%d lines were logged, want 1 to %d:\n%s", n, most, ts.log)
	}
}
