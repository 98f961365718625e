//go:build unix

package behave

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestRunChild is the process that TestRunSignals sends signals to.
func TestRunChild(t *testing.T) {
	if os.Getenv("CHERT_TEST_RUN") == "" {
		t.Skip("for TestRunSignals")
	}
	srv := new(chert.Server)
	l, err := srv.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	srv.Handler = hf(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("in")
		select {
		case <-release:
		case <-r.Context().Done():
		}
		put(w, "answer")
	})
	srv.RegisterOnShutdown(func() { fmt.Println("stopping") })
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err = chert.Run(ctx, srv, -1, func() error {
		fmt.Println(l.Addr())
		go func() {
			io.Copy(io.Discard, os.Stdin) // until the test closes it
			close(release)
		}()
		return srv.Serve(l)
	})
	fmt.Println("ended:", err)
}

func TestRunSignals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		first, second syscall.Signal
		want          string
	}{
		{"interrupt", syscall.SIGINT, 0, "ended: <nil>"},
		{"terminated, of which NotifyContext hears too", syscall.SIGTERM, 0, "ended: <nil>"},
		{"twice", syscall.SIGTERM, syscall.SIGINT, "ended: chert: second signal (interrupt), stopped at once: requests were cut off"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestRunChild$")
			cmd.Env = append(os.Environ(), "CHERT_TEST_RUN=1")
			stdin, _ := cmd.StdinPipe()
			stdout, _ := cmd.StdoutPipe()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cancel()
			lines := bufio.NewScanner(stdout)
			line := func() string {
				t.Helper()
				if !lines.Scan() {
					t.Fatalf("the process has ended: %v", lines.Err())
				}
				return lines.Text()
			}
			c := servertest.Dial(t, line())
			c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			c.SetDeadline(time.Now().Add(servertest.Patience))
			for _, want := range []string{"in", "stopping"} {
				if got := line(); got != want {
					t.Fatalf("got %q, want %q", got, want)
				}
				if want == "in" {
					cmd.Process.Signal(tt.first)
				}
			}
			if tt.second != 0 {
				cmd.Process.Signal(tt.second)
			} else {
				stdin.Close()
				if _, body := c.Response("GET"); body != "answer" {
					t.Errorf("got %q", body)
				}
			}
			if got := line(); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
