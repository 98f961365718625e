// Command trouble runs a server that has one of the usual troubles, with clients that cause it and the page of package
// admin, until it is interrupted. docs/observability/troubles.md shows each.
//
//	go run . route
//	go run . slots --admin 127.0.0.1:9081 --fix
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/chert-http/chert/admin"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "trouble:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		list(out)
		return nil
	}
	var t *trouble
	for i := range troubles {
		if troubles[i].name == args[0] {
			t = &troubles[i]
		}
	}
	if t == nil {
		list(os.Stderr)
		return fmt.Errorf("no trouble %q", args[0])
	}
	flags := flag.NewFlagSet(t.name, flag.ContinueOnError)
	at := flags.String("admin", "127.0.0.1:9080", "where the admin page is served")
	fix := flags.Bool("fix", false, "run the same load on a server without the trouble")
	load := flags.String("load", "", "only send the load, to the server at this `address`; the command uses it itself")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *load != "" {
		t.load(clients{ctx: ctx, addr: *load})
		awaitParent(os.Stdin)
		return nil
	}
	return serve(ctx, t, *at, *fix, out)
}

func list(w io.Writer) {
	fmt.Fprint(w, "usage: go run . NAME [--fix] [--admin ADDR]\n\n")
	for _, t := range troubles {
		fmt.Fprintf(w, "  %-10s %s\n", t.name, t.about)
	}
}

// serve runs the server, and its clients in another process: their goroutines and memory are not the server's.
func serve(ctx context.Context, t *trouble, at string, fix bool, out io.Writer) error {
	srv := t.server(fix)
	l, err := srv.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	pages, err := net.Listen("tcp", at)
	if err != nil {
		l.Close()
		return err
	}
	failed := make(chan error, 3)
	go func() { failed <- srv.Serve(l) }()
	defer srv.Close()
	page := &http.Server{Handler: admin.New(srv, &admin.Options{Title: "trouble " + t.name})}
	go func() { failed <- page.Serve(pages) }()
	defer page.Close()

	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, t.name, "--load", l.Addr().String())
	cmd.Stderr = os.Stderr
	alive, err := cmd.StdinPipe() // closed with this process, even if that is killed
	if err != nil {
		return err
	}
	defer alive.Close()
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	fmt.Fprintf(out, "trouble %s: %s\nadmin page: http://%s/ (chert top %s)\n\n%s\n\nCtrl-C ends it.\n", t.name, t.about, pages.Addr(), pages.Addr(), strings.TrimSpace(t.look))
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	case err := <-ended:
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("the clients ended: %v", err)
	}
}

// awaitParent returns when the process that has started this one has ended.
func awaitParent(in io.Reader) { io.Copy(io.Discard, in) }
