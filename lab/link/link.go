package link

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/lossy"
)

// Link is a network namespace and the pair of interfaces that leads to it.
type Link struct {
	// Addr is the address that servers in the namespace listen on.
	Addr      string
	name      string // of the namespace
	near, far string // the lab's interface, and that in the namespace
	// How the two are connected: by a wire, or as a veth pair.
	wire *lossy.Wire
	pair bool
}

// Options say what a link is like.
type Options struct {
	MTU        int    // of both interfaces
	Congestion string // what the servers' connections use; empty for the default of a new namespace
	// Path is what lies between two TUN devices, through which the lab carries the packets; nil for a veth pair.
	Path *lossy.Path
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
	if o.Path != nil {
		return o.Path.Check()
	}
	return nil
}

// Describe says it for a title.
func (o Options) Describe() string {
	text := fmt.Sprintf("veth with an MTU of %d", o.MTU)
	if o.Path != nil {
		text = fmt.Sprintf("%s, an MTU of %d", o.Path.Describe(), o.MTU)
	}
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
	l := &Link{Addr: theirs, name: fmt.Sprintf("chert-lab-%d", pid)}
	l.near, l.far = fmt.Sprintf("cl%da", pid), fmt.Sprintf("cl%db", pid)
	if err := ip(ctx, "netns", "add", l.name); err != nil {
		return nil, fmt.Errorf("make a network namespace, which needs root: %w", err)
	}
	steps := [][]string{
		{"addr", "add", mine + "/30", "dev", l.near},
		{"link", "set", l.near, "up"},
		{"-n", l.name, "addr", "add", theirs + "/30", "dev", l.far},
		{"-n", l.name, "link", "set", "lo", "up"},
		{"-n", l.name, "link", "set", l.far, "up"},
	}
	if o.Congestion != "" {
		// The route's, since a namespace may not be allowed to change its default.
		steps = append(steps, []string{"-n", l.name, "route", "replace", network + "/30", "dev", l.far,
			"proto", "kernel", "src", theirs, "congctl", o.Congestion})
	}
	err := l.devices(ctx, o)
	if err == nil {
		err = inOrder(ctx, steps)
	}
	if err != nil {
		return nil, fmt.Errorf("connect a network namespace: %w", errors.Join(err, l.Close()))
	}
	return l, nil
}

// devices makes the interfaces, which are down.
func (l *Link) devices(ctx context.Context, o Options) error {
	mtu := strconv.Itoa(o.MTU)
	if o.Path == nil {
		err := ip(ctx, "link", "add", l.near, "mtu", mtu, "type", "veth",
			"peer", "name", l.far, "netns", l.name, "mtu", mtu)
		l.pair = err == nil
		return err
	}
	near, err := lossy.OpenTUN(l.near)
	if err != nil {
		return err
	}
	far, err := lossy.OpenTUN(l.far)
	if err != nil {
		near.Close()
		return err
	}
	l.wire = lossy.Join(*o.Path, near, far)
	return inOrder(ctx, [][]string{
		// Without addresses of IPv6 the kernel sends nothing of its own, which would take part in the losses.
		{"link", "set", l.near, "mtu", mtu, "addrgenmode", "none"},
		{"link", "set", l.far, "netns", l.name},
		{"-n", l.name, "link", "set", l.far, "mtu", mtu, "addrgenmode", "none"},
		// What a connection has learned of the path is not for the next one: each would depend on those before it.
		{"netns", "exec", l.name, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save"},
	})
}

// Counts is what has become of the packets so far, if the link has a Path.
func (l *Link) Counts() lossy.Counts { return l.wire.Counts() }

// Enter returns the command that runs a program in the namespace. ip becomes the program by exec, so the process keeps
// its number.
func (l *Link) Enter(args []string) ([]string, error) {
	program, err := child.Find(args[0])
	if err != nil {
		return nil, err
	}
	return append([]string{"ip", "netns", "exec", l.name, program}, args[1:]...), nil
}

// Close removes the namespace and both interfaces.
func (l *Link) Close() (err error) {
	ctx := context.Background() // the lab's may have ended
	if l.wire != nil {
		err = l.wire.Close()
	}
	if l.pair {
		err = ip(ctx, "link", "del", l.near)
	}
	return errors.Join(err, ip(ctx, "netns", "del", l.name))
}

func inOrder(ctx context.Context, steps [][]string) error {
	for _, args := range steps {
		if err := ip(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func ip(ctx context.Context, args ...string) error {
	_, err := child.Run(ctx, child.Command{Args: append([]string{"ip"}, args...)})
	return err
}
