package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/cmd/chert/internal/demo"
	"github.com/chert-http/chert/internal/successor"
	"github.com/chert-http/chert/static"
	"github.com/chert-http/chert/stats"
	"github.com/spf13/cobra"
)

const demoLong = `Serve a small service that shows what chert can do: routes, bearer tokens and
JSON Web Tokens, limits, streams of events, a chat, an upload and files. Its
start page lists all of it and can run most.

Nothing is stored, and uploads are only counted. The tokens are random, made at
each start, and shown to everyone who can reach the server: they provide no
security. Only this machine can reach it unless --listen opens it.

The commands to try it with; when it starts it prints them with valid tokens:

  TOKEN=$(%s)

%s`

func newDemoCmd() *cobra.Command {
	o := demoOptions{runFlags: runFlags{log: logText}}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Serve a demonstration",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("the demo takes no arguments; to serve a folder: \"chert serve DIR\"")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return err
			}
			if o.store != "" && !o.cluster {
				return errors.New("--store is for --cluster")
			}
			err := asProcess(func() error { return serveDemo(&o, running(cmd), cmd.ErrOrStderr()) })
			if err != nil {
				return failure{err}
			}
			return nil
		},
	}
	cmd.Flags().SortFlags = false
	o.add(cmd)
	addBool(cmd, &o.cluster, "cluster", "", "run three instances that share the feed and the chat through a Redis; "+
		"the page /cluster\nshows them. It starts a redis-server")
	cmd.Flags().Var(&o.store, "store", "with --cluster: the Redis to use instead: redis://HOST:PORT/DB")
	mustComplete(cmd, "store", cobra.NoFileCompletions)
	// The commands are for the address of --listen, so that they can be pasted
	// as they are.
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		all, _ := o.addresses()
		at := demoAt(all[0])
		cmd.Long = fmt.Sprintf(demoLong, demo.TokenCommand(at),
			strings.TrimSuffix(demo.Text(demo.Commands(at, demo.Tokens{JWT: "$TOKEN"})), "\n"))
		help(cmd, args)
	})
	return cmd
}

// demoOptions are the flags of chert demo.
type demoOptions struct {
	runFlags
	cluster bool
	store   storeFlag
}

// demoAt returns where an endpoint is reached.
func demoAt(e endpoint) demo.At {
	if e.network == "unix" {
		return demo.At{Socket: e.address}
	}
	host := e.address
	for _, all := range []string{"", "0.0.0.0", "[::]"} {
		if port, ok := strings.CutPrefix(host, all+":"); ok {
			host = "localhost:" + port
		}
	}
	return demo.At{Host: host}
}

// serveDemo returns nil after a clean stop.
func serveDemo(o *demoOptions, stdout, stderr io.Writer) error {
	if o.quiet {
		stdout = io.Discard
	}
	stop, hangup, upgrades, release := signals()
	defer release()
	out := newLog(stderr)
	handler := &errorOutput{log: out}
	handler.set(o.log)
	defer within(flushWait, handler.close)
	errs := slog.NewLogLogger(handler, slog.LevelError)

	srv := &chert.Server{ErrorLog: errs, Upgrader: upgrader}
	s := &service{srv: srv, stdout: &unwaited{w: stdout}, errs: errs, upgrades: upgrades,
		reload: func() { errs.Print("the demo has nothing to reload") }}
	s.timeout.Store(int64(o.shutdownTimeout))
	all, _ := o.addresses()
	var err error
	if s.bindings, _, err = s.bind(all, nil); err != nil {
		return err
	}
	defer func() { s.unbind(s.bindings) }()
	var shared atomic.Pointer[demoCluster]
	if s.admin, err = startAdmin(o.admin.text, all, srv, "chert demo", nil, func() []stats.Store {
		return shared.Load().stats()
	}, errs); err != nil {
		return err
	}
	defer s.admin.close()
	if s.control, err = startControl(o.control.text, errs); err != nil {
		return err
	}
	defer s.control.close()
	ls := listeners(s.bindings)
	s.admin.show(shown{}, ls)
	opts := demo.Options{Logger: slog.New(handler), At: demoAt(opened(ls[0]))}
	if access := o.log.access(out); access != nil {
		opts.Log, srv.Refused = access.Wrap, access.Refused
	}
	if o.cluster {
		c, err := startCluster(string(o.store), opts.At, opts.Logger)
		if err != nil {
			return err
		}
		defer c.close()
		if err := c.share(&opts); err != nil {
			return err
		}
		if err := c.serve(errs); err != nil {
			return err
		}
		shared.Store(c)
	}
	d, err := demo.New(opts)
	if err != nil {
		return err
	}
	defer d.Close()
	f := &front{}
	f.replace(newGeneration(d.Handler, nil, d.Files))
	srv.Handler = f

	start := time.Now()
	if err := printDemo(stdout, o, d, ls, s.admin.line()); err != nil {
		return err
	}
	if o.open && !successor.Current().Follows() {
		openBrowser(ls, func(err error) { errs.Printf("note: cannot open the browser: %v", err) })
	}
	err = s.serveUntil(stop, hangup)
	// The cache's figures mean nothing where most requests are for no file.
	fmt.Fprint(s.stdout, f.tally.summary(time.Since(start), static.Stats{}, refused(srv)))
	return err
}

// opened returns the endpoint of an open listener, with the port that the
// system has chosen for port 0.
func opened(l listener) endpoint {
	network := "tcp"
	if l.Addr().Network() == "unix" {
		network = "unix"
	}
	return endpoint{network: network, address: l.Addr().String()}
}

func printDemo(w io.Writer, o *demoOptions, d *demo.Demo, ls []listener, admin string) error {
	what := "the demo"
	if o.cluster {
		what = fmt.Sprintf("%d instances of the demo, see /cluster", demoInstances)
	}
	line := "chert: serving " + what + " at " + showAll(ls) + opensHint(o.addresses()) +
		networkLine(ls, net.InterfaceAddrs) + admin
	jwt, err := d.JWT()
	if err != nil {
		return err
	}
	tokens := demo.Tokens{Bearer: d.Bearer(), JWT: jwt}
	fmt.Fprintf(w, "%s\n\n%s\n", line, demo.Text(demo.Commands(demoAt(opened(ls[0])), tokens)))
	return nil
}
