package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// startMain measures a cold start: from starting the process to the first byte of its first response. The program is in
// the page cache, as it is for a restart, except for the first round, which is printed by itself.
func startMain(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("start", flag.ContinueOnError)
	flags.SetOutput(out)
	rounds := flags.Int("rounds", 40, "how many times to start it, at most `N`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *rounds < 2 {
		return fmt.Errorf("-rounds %d is too few", *rounds)
	}
	root, err := filepath.Abs("..") // this module's folder is packaging
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "chert-start-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	program := filepath.Join(temp, host.program())
	if _, err := output(goCommand(ctx, root, host, "build", "-trimpath", "-buildvcs=false", linkerFlags, "-o", program,
		"./cmd/chert")); err != nil {
		return err
	}
	www := filepath.Join(temp, "www")
	if err := os.Mkdir(www, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(www, "index.html"), []byte("x"), 0o644); err != nil {
		return err
	}
	times := make([]time.Duration, *rounds)
	for i := range times {
		if times[i], err = startOnce(ctx, program, www, filepath.Join(temp, fmt.Sprintf("s%d", i))); err != nil {
			return err
		}
	}
	first := times[0]
	slices.Sort(times)
	at := func(part float64) time.Duration {
		return times[int(part*float64(len(times)-1))].Round(100 * time.Microsecond)
	}
	fmt.Fprintf(out,
		"from the start of the process to the first byte of a response, %d times: "+
			"median %v, 10%% %v, 90%% %v; the first %v\n",
		len(times), at(0.5), at(0.1), at(0.9), first.Round(100*time.Microsecond))
	return nil
}

// startOnce connects again and again until there is a response.
func startOnce(ctx context.Context, program, dir, socket string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, program, "serve", "--quiet", "--listen", "unix:"+socket, dir)
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for time.Since(begin) < 10*time.Second {
		c, err := net.Dial("unix", socket)
		if err != nil {
			time.Sleep(100 * time.Microsecond)
			continue
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return 0, err
		}
		_, err = io.ReadFull(c, make([]byte, len("HTTP/1.1 200")))
		return time.Since(begin), err
	}
	return 0, fmt.Errorf("%s does not respond", program)
}
