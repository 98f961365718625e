package profile

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/million"
)

// Profile is one measurement.
type Profile struct {
	Name  string
	About string // one line
	// Run takes the rest of the command line. Tables go to out, progress to log.
	Run func(ctx context.Context, args []string, out, log io.Writer) error
}

// All lists the profiles.
func All() []Profile {
	var all []Profile
	for _, s := range scenes() {
		all = append(all, Profile{s.name, s.about, s.run})
	}
	for _, d := range duets() {
		all = append(all, Profile{d.name, d.about, d.run})
	}
	all = append(all, Profile{"slowreaders", "a fast download alone and beside 1,000 slow ones of a file of 10 GiB", runReaders})
	all = append(all, Profile{"stream", "bodies of 64 MiB: an echo, uploads and downloads, in chunks and with a length", runStream})
	all = append(all, Profile{"h2far", "HTTP/2: an upload of 1 GiB over a link with a delay of 50 ms", runFar})
	all = append(all, Profile{"h3download", "HTTP/3: a download of 1 GiB, beside HTTP/2", runH3Download})
	all = append(all, Profile{"h3pages", "HTTP/3: pages over a path that delays and loses packets, beside HTTP/2 and HTTP/1; needs root", runH3Pages})
	all = append(all, Profile{"h3idle", "idle connections of HTTP/3, beside HTTP/2: resident bytes and goroutines for each", runH3Idle})
	all = append(all, Profile{"page", "the live page of a busy server with 10,000 connections: what watching costs, and whether it stays live", runPage})
	all = append(all, Profile{"sseidle", "idle streams of events: resident bytes and goroutines for each", runEventsIdle})
	all = append(all, Profile{"ssebroadcast", "events that 10,000 streams get: processor time for each", runEventsBroadcast})
	all = append(all, Profile{"wsidle", "idle WebSockets: resident bytes and goroutines for each", runSocketsIdle})
	all = append(all, Profile{"wsbroadcast", "a message that 10,000 WebSockets get: processor time for each", runSocketsBroadcast})
	all = append(all, Profile{"proxywait", "requests that wait at a reverse proxy: resident bytes for each", runProxyWait})
	all = append(all, Profile{"proxylatency", "what a reverse proxy adds to the latency of paced requests", runProxyLatency})
	all = append(all, Profile{"million", "very many idle connections: in memory, and real ones as far as limits allow", million.Run})
	return append(all, Profile{"idle", "idle keep-alive connections: resident bytes and goroutines for each", runIdle})
}

// ErrFaulty means that requests failed: the figures were printed, but they are not to be used.
var ErrFaulty = errors.New("requests failed; the figures above count for nothing")

// Pace is how often and how long each server has its turn.
type Pace struct {
	Rounds, Seconds int
}

func (p *Pace) register(f *flag.FlagSet) {
	f.IntVar(&p.Rounds, "rounds", 7, "how many turns each server has")
	f.IntVar(&p.Seconds, "seconds", 2, "how long a turn is")
}

func (p *Pace) check() error {
	if p.Rounds < 1 || p.Seconds < 1 {
		return fmt.Errorf("%d rounds of %d s: neither may be less than 1", p.Rounds, p.Seconds)
	}
	return nil
}

// inTurn calls f for each of n servers in every round; turn is the round's name. Each round begins with another server,
// so that none always follows the same one.
func (p *Pace) inTurn(n int, f func(i int, turn string) error) error {
	for round := range p.Rounds {
		for k := range n {
			if err := f((round+k)%n, fmt.Sprintf("round %d/%d", round+1, p.Rounds)); err != nil {
				return err
			}
		}
	}
	return nil
}

// parse reads flags; anything after them is a mistake.
func parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%s takes no argument %q", f.Name(), f.Arg(0))
	}
	given := map[string]bool{}
	f.Visit(func(flag *flag.Flag) { given[flag.Name] = true })
	if given["servers"] && (given["server"] || given["vs"]) {
		return errors.New("--servers lists all that take part: neither --server nor --vs goes with it")
	}
	return writable(f)
}

// writable reports whether what --json and --plot name can be written: it is, when all has been measured. A file that
// is not there yet is not left behind empty.
func writable(f *flag.FlagSet) error {
	if path := f.Lookup("json"); path != nil && path.Value.String() != "" {
		name := path.Value.String()
		_, before := os.Stat(name)
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			return fmt.Errorf("--json: %w", err)
		}
		if file.Close(); errors.Is(before, fs.ErrNotExist) {
			if made, err := filepath.EvalSymlinks(name); err == nil { // not a link that has led nowhere
				os.Remove(made)
			}
		}
	}
	if dir := f.Lookup("plot"); dir != nil && dir.Value.String() != "" {
		if err := os.MkdirAll(dir.Value.String(), 0o777); err != nil {
			return fmt.Errorf("--plot: %w", err)
		}
	}
	return nil
}

// numbers reads "64,512".
func numbers(list string) ([]int, error) {
	var all []int
	for field := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("list of numbers %q", list)
		}
		all = append(all, n)
	}
	return all, nil
}

// installed fails if a program is not there.
func installed(programs ...string) error {
	for _, program := range programs {
		if _, err := child.Find(program); err != nil {
			return err
		}
	}
	return nil
}
