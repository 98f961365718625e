package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/top"
	"github.com/spf13/cobra"
)

const topLong = `Watch a running server in the terminal: requests, latency by stage, loops, routes
and what stands out. It must have been started with --admin, or serve package
admin itself. URL may be a URL, host:port, a port of this machine, or unix:/path;
without it: ` + top.DefaultAddress + `.

Keys: q quits, space pauses; r, l, t, e and o sort the routes by requests, latency,
time in handlers, errors and hand-overs; tab shows the requests in progress or the
connections, c the connections, u the upstreams that requests are forwarded to and the
stores of topics and rooms, s the sites, their certificates and the last reload.

If the output is no terminal, a block of text is printed for each interval.`

func newTopCmd() *cobra.Command {
	o := top.Options{Every: time.Second}
	cmd := &cobra.Command{
		Use:     "top [URL]",
		Short:   "Watch a running server",
		Long:    topLong,
		Example: "  chert top\n  chert top 9081\n  chert top --once > now.txt",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("one URL at most")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Every < 100*time.Millisecond {
				return fmt.Errorf("--interval %v is too short; want 100ms or more", o.Every)
			}
			where := ""
			if len(args) > 0 {
				where = args[0]
			}
			c, err := top.NewClient(where)
			if err != nil {
				return err
			}
			defer c.Close()
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			if err := top.Run(ctx, c, o, cmd.InOrStdin(), running(cmd)); err != nil {
				return failure{err}
			}
			return nil
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().Var((*durationFlag)(&o.Every), "interval", "the time between two updates, at least 100ms")
	addBool(cmd, &o.Once, "once", "", "print one block of text, of one interval, and end")
	mustComplete(cmd, "interval", cobra.NoFileCompletions)
	return cmd
}
