package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/cmd/chert/internal/demo"
	"github.com/chert-http/chert/middleware"
	"github.com/spf13/cobra"
)

// demoOptions is the command line of "chert demo".
type demoOptions struct {
	listen          endpoints
	log             logFormat
	quiet           bool
	open            bool
	shutdownTimeout time.Duration
}

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
	o := demoOptions{log: logText}
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
			if o.shutdownTimeout < 0 {
				return fmt.Errorf("--shutdown-timeout %v is negative; 0 does not wait", o.shutdownTimeout)
			}
			if o.quiet && cmd.Flags().Changed("log") && o.log != logOff {
				return fmt.Errorf("--quiet and --log %s contradict each other; leave one out", o.log)
			}
			if o.quiet {
				o.log = logOff
			}
			if err := serveDemo(&o, cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
				return failure{err}
			}
			return nil
		},
	}
	o.addFlags(cmd)
	// Its lines are for the address that --listen says, so that they can be pasted as they are.
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		at := demoAt(o.listen.orDefault()[0])
		cmd.Long = fmt.Sprintf(demoLong, demo.TokenLine(at), strings.TrimSuffix(demo.Text(demo.Lines(at, demo.Tokens{JWT: "$TOKEN"})), "\n"))
		help(cmd, args)
	})
	return cmd
}

func (o *demoOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.VarP(&o.listen, "listen", "l", "where to listen: host:port, :port or unix:/path; may be repeated")
	f.BoolVar(&o.open, "open", false, "open the browser")
	f.Var(&o.log, "log", "log requests to stderr: off, text or json")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print nothing but errors")
	f.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 30*time.Second,
		"how long a stop waits for running requests; 0 does not wait")
	mustComplete(cmd, "log", cobra.FixedCompletions([]string{
		"off\tno access log",
		"text\tkey=value lines",
		"json\tone object a line",
	}, cobra.ShellCompDirectiveNoFileComp))
	mustComplete(cmd, "listen", cobra.NoFileCompletions)
	mustComplete(cmd, "shutdown-timeout", cobra.NoFileCompletions)
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
func serveDemo(o *demoOptions, stdout, stderr io.Writer) error {
	if o.quiet {
		stdout = io.Discard
	}
	stop, hangup, release := signals()
	defer release()
	out := newLines(stderr)
	defer out.close()
	_, errs := loggers(o.log, out)

	srv := &chert.Server{ErrorLog: errs}
	ls, err := openAll(srv.Listen, o.listen.orDefault())
	defer func() {
		for _, l := range ls {
			l.close()
		}
	}()
	if err != nil {
		return err
	}
	d, closeDemo, err := newDemo(o, demoAt(opened(ls[0])), out, errs)
	if err != nil {
		return err
	}
	defer closeDemo()
	f := &front{}
	f.replace(newGeneration(d.Handler, nil, d.Files))
	srv.Handler = f
	// Streams would hold the shutdown up until they are cut off.
	srv.RegisterOnShutdown(d.Stop)

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
	fmt.Fprint(stdout, f.tally.summary(time.Since(start), f.cache()))
	return err
}

func waitDemo(o *demoOptions, srv *chert.Server, failed <-chan error, stop, hangup <-chan os.Signal, stdout io.Writer, errs *log.Logger) error {
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

// newDemo makes the service and its log of requests. What it returns beside closes both.
func newDemo(o *demoOptions, at demo.At, out io.Writer, errs *log.Logger) (*demo.Demo, func(), error) {
	var access *middleware.AccessLog
	opts := demo.Options{Errors: errs, At: at}
	if o.log != logOff {
		format := middleware.LogText
		if o.log == logJSON {
			format = middleware.LogJSON
		}
		// Lines are gathered by out.
		access = middleware.NewAccessLog(&middleware.AccessLogOptions{Format: format, Output: out, Buffer: -1})
		opts.Log = access.Wrap
	}
	d, err := demo.New(opts)
	if err != nil {
		return nil, nil, err
	}
	return d, func() {
		d.Close()
		if access != nil {
			access.Close()
		}
	}, nil
}

// opened is the endpoint that a listener has become: port 0 is another by now.
func opened(l listener) endpoint {
	network := "tcp"
	if l.Addr().Network() == "unix" {
		network = "unix"
	}
	return endpoint{network, l.Addr().String()}
}

func printDemo(w io.Writer, o *demoOptions, d *demo.Demo, ls []listener) error {
	line := "chert: serving the demo at " + showAll(ls)
	if len(o.listen) == 0 {
		line += " (this machine only; --listen :8080 opens it to the network)"
	}
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
