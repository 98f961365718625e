package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/cmd/chert/internal/demo"
	"github.com/chert-http/chert/static"
	"github.com/spf13/cobra"
)

const demoLong = `Serve a small service that shows what chert can do: routes, bearer tokens and
JSON Web Tokens, limits, a stream of events, an upload and files. Its start page
lists all of it and can try most.

Nothing is stored, and uploads are only counted. The tokens are random, made at
each start, and shown to everybody who can reach the server: it guards nothing.
Only this machine can reach it unless --listen says otherwise.

The lines to try it with; when it starts it prints them with tokens that are
good already:

  TOKEN=$(%s)

%s`

func newDemoCmd() *cobra.Command {
	o := runFlags{log: logText}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Serve a demonstration",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("the demo takes no arguments; to serve the folder %s: \"chert serve\"", quote(args[0]))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return err
			}
			if err := serveDemo(&o, cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
				return failure{err}
			}
			return nil
		},
	}
	cmd.Flags().SortFlags = false
	o.add(cmd)
	// Its lines are for the address that --listen says, so that they can be pasted as they are.
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		all, _ := o.addresses()
		at := demoAt(all[0])
		cmd.Long = fmt.Sprintf(demoLong, demo.TokenLine(at), strings.TrimSuffix(demo.Text(demo.Lines(at, demo.Tokens{JWT: "$TOKEN"})), "\n"))
		help(cmd, args)
	})
	return cmd
}

// demoAt is where an endpoint is reached.
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
func serveDemo(o *runFlags, stdout, stderr io.Writer) error {
	if o.quiet {
		stdout = io.Discard
	}
	stop, hangup, release := signals()
	defer release()
	out := newLog(stderr)
	defer out.Close()
	errs := o.log.errors(out)

	srv := &chert.Server{ErrorLog: errs}
	all, _ := o.addresses()
	ls, err := openAll(srv.Listen, all)
	defer func() {
		for _, l := range ls {
			l.close()
		}
	}()
	if err != nil {
		return err
	}
	opts := demo.Options{Errors: errs, At: demoAt(opened(ls[0]))}
	if access := o.log.access(out); access != nil {
		opts.Log, srv.Refused = access.Wrap, access.Refused
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
	if err := printDemo(stdout, o, d, ls); err != nil {
		return err
	}
	if o.open {
		openDemo(ls, errs)
	}
	failed := make(chan error, len(ls))
	for _, l := range ls {
		go func() { failed <- srv.Serve(l.Listener) }()
	}
	err = waitDemo(o, srv, failed, stop, hangup, stdout, errs)
	// What came from the cache says nothing where most is no file.
	fmt.Fprint(stdout, f.tally.summary(time.Since(start), static.Stats{}, refused(srv)))
	return err
}

func waitDemo(o *runFlags, srv *chert.Server, failed <-chan error, stop, hangup <-chan os.Signal, stdout io.Writer, errs *log.Logger) error {
	for {
		select {
		case err := <-failed:
			srv.Close()
			return fmt.Errorf("the server failed: %w", err)
		case <-hangup:
			errs.Print("the demo has nothing to reload")
		case sig := <-stop:
			fmt.Fprintf(stdout, "chert: %v: finishing running requests for up to %v; once more stops at once\n", sig, o.shutdownTimeout)
			return drain(srv, stop, o.shutdownTimeout)
		}
	}
}

// openAll opens one endpoint after the other, until one fails.
func openAll(open openFunc, all []endpoint) (ls []listener, err error) {
	for _, e := range all {
		l, err := listen(open, e)
		if err != nil {
			return ls, err
		}
		ls = append(ls, l)
	}
	return ls, nil
}

// opened is the endpoint that a listener has become: port 0 is another by now.
func opened(l listener) endpoint {
	network := "tcp"
	if l.Addr().Network() == "unix" {
		network = "unix"
	}
	return endpoint{network: network, address: l.Addr().String()}
}

func printDemo(w io.Writer, o *runFlags, d *demo.Demo, ls []listener) error {
	line := "chert: serving the demo at " + showAll(ls) + opensHint(o.addresses()) + networkLine(ls, net.InterfaceAddrs)
	jwt, err := d.JWT()
	if err != nil {
		return err
	}
	tokens := demo.Tokens{Bearer: d.Bearer(), JWT: jwt}
	fmt.Fprintf(w, "%s\n\n%s\n", line, demo.Text(demo.Lines(demoAt(opened(ls[0])), tokens)))
	return nil
}

// openDemo shows the start page.
func openDemo(ls []listener, errs *log.Logger) {
	note := func(err error) { errs.Printf("note: cannot open the browser: %v", err) }
	for _, l := range ls {
		if url := showURL(l.Addr()); strings.HasPrefix(url, "http:") {
			if err := startBrowser(url, note); err != nil {
				note(err)
			}
			return
		}
	}
	note(fmt.Errorf("it cannot go to a unix socket"))
}
