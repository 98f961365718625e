package faults

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// The process runs out of descriptors: the server neither spins nor floods its
// log, sends 503 to waiting connections (loops have a reserve for that; a
// listener that is not a socket can only pause), keeps its connections, and
// continues when descriptors are free again.
func TestFaultsOutOfDescriptors(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		c := servertest.StartChild(t, "TestFaultsChildDescriptors", fmt.Sprint(int(e)))
		fs := &engines.Counting{Server: &engines.Server{T: t, ListenAddr: c.Addr}}
		// The first is closed at once, the others have requests.
		idle, kept := fs.Dial(), fs.Dial()
		idle.Send(servertest.GET)
		idle.Status(200)
		kept.Send(servertest.GET + servertest.GET[:1])
		kept.Status(200)
		fmt.Fprintln(c.In, "exhaust")
		c.Line("exhausted")
		var waiting *servertest.Client
		if e == chert.EngineGoroutines {
			waiting = fs.Dial()
			waiting.Send(servertest.GET)
		} else {
			// It takes the last descriptor, and is not closed without a
			// newcomer.
			first := fs.Dial()
			idle.Ended()
			first.Send(servertest.GET + servertest.GET[:1])
			first.Status(200)
			for range 5 {
				refusedPlace(fs.Dial())
			}
		}
		kept.Send(servertest.GET[1:] + servertest.GET[:1])
		kept.Status(200)
		// Long enough for many tries.
		fmt.Fprintln(c.In, "wait")
		c.Line("waited")
		fmt.Fprintln(c.In, "release")
		c.Line("released")
		if waiting != nil {
			waiting.Status(200)
		}
		servertest.Eventually(t, "the server accepts again", func() bool {
			n := fs.Dial()
			defer n.Close()
			if _, err := io.WriteString(n, servertest.GET); err != nil {
				return false
			}
			res, err := http.ReadResponse(n.R, nil)
			return err == nil && res.StatusCode == 200
		})
		kept.Send(servertest.GET[1:])
		kept.Status(200)
		c.In.Close()
		c.Ends()
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
	// One loop, so that the idle connection gives way in the turn in which the newcomer comes: that of another loop
	// may take longer than the newcomer is kept waiting, if the machine is busy.
	runtime.GOMAXPROCS(1)
	ts := engines.Start(t, &chert.Server{Engine: e, Handler: faultOK, MaxConns: -1})
	fmt.Println("addr", ts.ListenAddr)
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
	n := countLines(ts.Log.String(), "too many open files")
	if most := int(time.Since(begin)/time.Second) + 2; n < 1 || n > most {
		t.Errorf("%d lines were logged, want 1 to %d:\n%s", n, most, ts.Log)
	}
}
