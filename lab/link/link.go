package link

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/chert-http/chert/lab/child"
)

// Link is a network namespace and the pair of interfaces that leads to it.
type Link struct {
	// Addr is the address that servers in the namespace listen on.
	Addr string
	name string // of the namespace
	near string // the lab's interface
}

// Options say what a link is like.
type Options struct {
	MTU        int    // of both interfaces
	Congestion string // what the servers' connections use; empty for the default of a new namespace
}

// The limits of an MTU: IPv4 needs 68 and a packet has 65,535.
const (
	leastMTU = 68
	mostMTU  = 65535
)

// Check validates the options.
func (o Options) Check() error {
	if o.MTU < leastMTU || o.MTU > mostMTU {
		return fmt.Errorf("an MTU of %d: must be %d to %d", o.MTU, leastMTU, mostMTU)
	}
	return nil
}

// Describe says it for a title.
func (o Options) Describe() string {
	text := fmt.Sprintf("veth with an MTU of %d", o.MTU)
	if o.Congestion != "" {
		text += " and " + o.Congestion
	}
	return text
}

// Open makes a link. The caller closes it after the servers in it have stopped.
func Open(ctx context.Context, o Options) (*Link, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	// Names and addresses differ from those of another lab that runs at the same time. 198.18.0.0/15 is for benchmarks
	// (RFC 2544, appendix C.2.2).
	pid := os.Getpid()
	subnet := fmt.Sprintf("198.18.%d.", pid>>6&0xff)
	host := pid & 0x3f * 4
	network, mine, theirs := subnet+strconv.Itoa(host), subnet+strconv.Itoa(host+1), subnet+strconv.Itoa(host+2)
	l := &Link{Addr: theirs, name: fmt.Sprintf("chert-lab-%d", pid), near: fmt.Sprintf("cl%da", pid)}
	far, mtu := fmt.Sprintf("cl%db", pid), strconv.Itoa(o.MTU)
	steps := [][]string{
		{"netns", "add", l.name},
		{"link", "add", l.near, "mtu", mtu, "type", "veth", "peer", "name", far, "netns", l.name, "mtu", mtu},
		{"addr", "add", mine + "/30", "dev", l.near},
		{"link", "set", l.near, "up"},
		{"-n", l.name, "addr", "add", theirs + "/30", "dev", far},
		{"-n", l.name, "link", "set", "lo", "up"},
		{"-n", l.name, "link", "set", far, "up"},
	}
	if o.Congestion != "" {
		// The route's, since a namespace may not be allowed to change its default.
		steps = append(steps, []string{"-n", l.name, "route", "replace", network + "/30", "dev", far,
			"proto", "kernel", "src", theirs, "congctl", o.Congestion})
	}
	for i, args := range steps {
		if err := ip(ctx, args...); err != nil {
			if i > 0 {
				err = errors.Join(err, l.Close())
			}
			return nil, fmt.Errorf("make a network namespace, which needs root: %w", err)
		}
	}
	return l, nil
}

// Enter returns the command that runs a program in the namespace. ip becomes the program by exec, so the process keeps
// its number.
func (l *Link) Enter(args []string) ([]string, error) {
	program, err := child.Find(args[0])
	if err != nil {
		return nil, err
	}
	return append([]string{"ip", "netns", "exec", l.name, program}, args[1:]...), nil
}

// Close removes the namespace, and with it both interfaces.
func (l *Link) Close() error {
	// Not with the lab's context, which may have ended.
	return errors.Join(ip(context.Background(), "link", "del", l.near), ip(context.Background(), "netns", "del", l.name))
}

func ip(ctx context.Context, args ...string) error {
	_, err := child.Run(ctx, child.Command{Args: append([]string{"ip"}, args...)})
	return err
}
