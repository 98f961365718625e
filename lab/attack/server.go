package attack

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/measure"
)

// start runs the server, at ports that are its own until release is called.
func start(ctx context.Context, t target) (proc *child.Child, addr [fronts]string, release func(), err error) {
	var reserved []func()
	release = func() {
		for _, f := range reserved {
			f()
		}
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	for i := range addr {
		a, f, err := freeport.Reserve("127.0.0.1")
		if err != nil {
			return nil, addr, release, err
		}
		addr[i], reserved = a, append(reserved, f)
	}
	proc, err = child.Start(ctx, child.Command{
		Args: []string{t.binary, "--server", t.kind, "--listen", addr[plain], "--tls", addr[withECDSA], "--rsa", addr[withRSA],
			"--h3", addr[withH3]},
		Cores: []int{0},
	})
	if err != nil {
		return nil, addr, release, err
	}
	if err = await(ctx, addr[plain], proc); err != nil {
		proc.Stop()
	}
	return proc, addr, release, err
}

// shutdown ends the server while the attack goes on.
func (o *options) shutdown(proc *child.Child, r *result) error {
	began := time.Now()
	p, err := os.FindProcess(proc.PID())
	if err != nil {
		return err
	}
	defer p.Release()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-proc.Done():
	case <-time.After(15 * time.Second):
		return errors.New("the server does not shut down")
	}
	r.shutdown = time.Since(began)
	return nil
}

// memory collects garbage in the server and asks for what is left, in MB.
func memory(addr string) (heap, resident float64, err error) {
	c := http.Client{Timeout: 2 * patience}
	defer c.CloseIdleConnections()
	if res, err := c.Get("http://" + addr + "/debug/gc"); err == nil {
		res.Body.Close()
	}
	res, err := c.Get("http://" + addr + "/debug/stats")
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	var p measure.Process
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
		return 0, 0, err
	}
	return float64(p.HeapInUse) / 1e6, float64(p.Resident) / 1e6, nil
}

func await(ctx context.Context, addr string, proc *child.Child) error {
	for {
		c, err := connect(ctx, addr, false)
		if err == nil {
			defer c.Close()
			return c.ask(false)
		}
		if ended := proc.Ended(); ended != nil {
			return ended
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(20 * time.Millisecond) // polling of a program
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
