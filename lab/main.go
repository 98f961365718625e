// Command lab measures chert beside other servers. Without arguments it lists what it can measure.
//
//	go run . run plain64 --vs nethttp,nginx
//	go run . run fastslow --cores 2
//	go run . run idle --connections 10000
//	go run . run plain64 --servers chert --against HEAD~1
//	go run . attack ws-pings
//	go run . crossed plain direct
//	go run . spread
//	go run . sim --for 10m --model h2
//	go run . experiment stages
//	go run . plot plain record/measurements/2026-11-21.md plots
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/chert-http/chert/lab/attack"
	"github.com/chert-http/chert/lab/crossed"
	"github.com/chert-http/chert/lab/experiment"
	"github.com/chert-http/chert/lab/profile"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/simulate"
	"github.com/chert-http/chert/lab/sizes"
	"github.com/chert-http/chert/lab/spread"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	interrupted := ctx.Err() != nil
	cancel()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case interrupted: // err only says what was interrupted
		fmt.Fprintln(os.Stderr, "lab: interrupted")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	help := []string{"-h", "-help", "--help", "help"}
	// The others have flags of their own.
	lists := []string{"run", "plot", "experiment"}
	if len(args) == 0 || slices.Contains(help, args[0]) ||
		slices.Contains(lists, args[0]) && len(args) > 1 && slices.Contains(help, args[1]) {
		list(out)
		return nil
	}
	if args[0] == "plot" {
		if len(args) != 4 {
			return errors.New("plot wants a profile, a file with its tables, and a folder")
		}
		return profile.Draw(args[1], args[2], args[3])
	}
	if args[0] == "attack" {
		return attack.Main(ctx, args[1:], out, log)
	}
	if args[0] == "crossed" {
		return crossed.Main(ctx, args[1:], out, log)
	}
	if args[0] == "sizes" {
		return sizes.Main(ctx, args[1:], out, log)
	}
	if args[0] == "spread" {
		return spread.Main(ctx, args[1:], out, log)
	}
	if args[0] == "sim" {
		return simulate.Main(ctx, args[1:], out, log)
	}
	if args[0] == "experiment" {
		return experiment.Main(ctx, args[1:], out, log)
	}
	if args[0] != "run" {
		list(log)
		return fmt.Errorf("no command %q", strings.Join(args, " "))
	}
	if len(args) < 2 {
		list(log)
		return errors.New("run wants a profile")
	}
	for _, p := range profile.All() {
		if p.Name == args[1] {
			return p.Run(ctx, args[2:], out, log)
		}
	}
	list(log)
	return fmt.Errorf("no profile %q", args[1])
}

func list(w io.Writer) {
	fmt.Fprint(w, `usage: go run . run PROFILE [flags]     (go run . run PROFILE -h lists the flags)
       go run . plot PROFILE FILE DIR  (draws tables that earlier runs have printed)
       go run . attack [NAME...]       (innocent clients beside hostile ones; -h lists the attacks)
       go run . crossed [PATH...]      (the functions that one request crosses; -h lists the paths)
       go run . sizes                  (lines, methods, fields and places of recover in chert's source)
       go run . spread [flags]         (limits by address at instances behind a balancer that hashes)
       go run . sim [flags]            (chert on a simulated kernel, with a seed for each run; see docs/testing.md)
       go run . experiment NAME|all    (repeats what others have published, and writes record/experiments)

  --vs nginx,nethttp       chert and these rivals
  --servers chert,nginx    these servers and no others
  --against REVISION       chert's servers as they were at a commit, branch or tag, too
  --against-tags TAGS      chert's servers as they are when built with these tags, too
  --rounds 30 --seconds 1  more and shorter turns
  --veth 1500              servers in a network namespace, over a veth pair; --congestion cubic

`)
	for _, p := range profile.All() {
		fmt.Fprintf(w, "  %-11s %s\n", p.Name, p.About)
	}
	fmt.Fprintln(w, "\nexperiments:")
	for _, e := range experiment.All() {
		fmt.Fprintf(w, "  %-11s %s\n", e.Name, e.Title)
	}
	fmt.Fprintf(w, "\nservers: %s\n", strings.Join(rival.Names(), ", "))
}
