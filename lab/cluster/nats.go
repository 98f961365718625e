package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/eventstream/natstopic"
	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsNodes is how many servers have the stream, so that one may be away.
const natsNodes = 3

func natsOptions() *natstopic.Options {
	return &natstopic.Options{History: history, Replicas: natsNodes}
}

// natsMain is the process of a nats-server. It cuts its connections to clients for each line of
// its input, and ends with that.
func natsMain(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("nats", flag.ContinueOnError)
	name, dir, routes := f.String("name", "", ""), f.String("dir", "", ""), f.String("routes", "", "")
	port, route := f.Int("port", 0, ""), f.Int("route", 0, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	srv, err := natsd.NewServer(&natsd.Options{ServerName: *name, Host: "127.0.0.1", Port: *port, JetStream: true, StoreDir: *dir,
		NoLog: true, NoSigs: true, Routes: natsd.RoutesFromStr(*routes),
		Cluster: natsd.ClusterOpts{Name: "lab", Host: "127.0.0.1", Port: *route}})
	if err != nil {
		return err
	}
	srv.Start()
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			all, err := srv.Connz(&natsd.ConnzOptions{Limit: 1 << 16})
			if err != nil {
				continue
			}
			for _, conn := range all.Conns {
				srv.DisconnectClientByID(conn.Cid) // an error: it has gone
			}
		}
		os.Exit(0)
	}()
	<-ctx.Done()
	return nil
}

// natsServers is a cluster of NATS.
type natsServers struct {
	p     *plan
	nodes []*natsNode
	nc    *nats.Conn

	kills, outages, cuts int
}

type natsNode struct {
	p     *plan
	addr  string
	args  []string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	past  time.Duration
}

func startNATS(p *plan) (*natsServers, error) {
	n := &natsServers{p: p}
	var routes, ports []string
	for range natsNodes {
		addr, err := freeAddr()
		if err != nil {
			return nil, err
		}
		_, port, _ := net.SplitHostPort(addr)
		routes, ports = append(routes, "nats://"+addr), append(ports, port)
	}
	for i, port := range ports {
		addr, err := freeAddr()
		if err != nil {
			return nil, err
		}
		_, own, _ := net.SplitHostPort(addr)
		name := fmt.Sprint("nats", i)
		node := &natsNode{p: p, addr: addr, args: []string{"nats", "-name", name, "-dir", filepath.Join(p.dir, name), "-port", own,
			"-route", port, "-routes", strings.Join(routes, ",")}}
		n.nodes = append(n.nodes, node)
		if err := node.start(); err != nil {
			return nil, err
		}
	}
	var err error
	if n.nc, err = nats.Connect(n.url(), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true)); err != nil {
		return nil, err
	}
	return n, n.heal()
}

// start starts the server; it does not wait until it has found the others.
func (n *natsNode) start() (err error) {
	n.cmd = exec.CommandContext(n.p.ctx, n.p.self, n.args...)
	n.cmd.Stderr = n.p.log
	if n.stdin, err = n.cmd.StdinPipe(); err != nil {
		return err
	}
	return n.cmd.Start()
}

func (n *natsNode) kill() {
	if n.cmd != nil {
		n.past += cpuOf(n.cmd.Process.Pid)
		n.cmd.Process.Kill()
		n.cmd.Wait()
		n.cmd = nil
	}
}

func (n *natsServers) name() string { return "NATS" }
func (n *natsServers) reads() int   { return 0 }

func (n *natsServers) url() string {
	var all []string
	for _, node := range n.nodes {
		all = append(all, "nats://"+node.addr)
	}
	return strings.Join(all, ",")
}

func (n *natsServers) kill() {
	n.nc.Close()
	for _, node := range n.nodes {
		node.kill()
	}
}

func (n *natsServers) cpu() (d time.Duration) {
	for _, node := range n.nodes {
		if d += node.past; node.cmd != nil {
			d += cpuOf(node.cmd.Process.Pid)
		}
	}
	return d
}

func (n *natsServers) faults() string {
	return fmt.Sprintf("one of %d servers of NATS killed: %d, two of them: %d, times all connections to NATS were cut: %d",
		len(n.nodes), n.kills, n.outages, n.cuts)
}

// fail implements store.
func (n *natsServers) fail() error {
	nodes := rand.Perm(len(n.nodes))
	switch r := rand.N(12); {
	case r < 4:
		n.cuts++
		var errs []error
		for _, node := range n.nodes {
			_, err := io.WriteString(node.stdin, "cut\n")
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	case r < 9:
		n.kills++
		nodes = nodes[:1]
	default: // the others cannot store anything
		n.outages++
		nodes = nodes[:2]
	}
	for _, i := range nodes {
		n.nodes[i].kill()
	}
	n.p.sleep(rand.N(5 * time.Second))
	for _, i := range nodes {
		if err := n.nodes[i].start(); err != nil {
			return err
		}
	}
	return n.heal() // a second server that is killed before would be an outage
}

// heal implements store.
func (n *natsServers) heal() error {
	st, err := natstopic.Open(n.url(), natsOptions())
	if err != nil {
		return err
	}
	defer st.Close()
	for range 120 {
		if err = st.Check(n.p.ctx); err == nil {
			err = n.current()
		}
		if err == nil || !n.p.sleep(500*time.Millisecond) {
			return err
		}
	}
	return fmt.Errorf("NATS is not well after a minute: %w", err)
}

// current returns an error if a replica lacks something.
func (n *natsServers) current() error {
	st, err := n.stream()
	if err != nil {
		return err
	}
	c := st.CachedInfo().Cluster
	if c == nil || c.Leader == "" || len(c.Replicas) != len(n.nodes)-1 {
		return errors.New("there is no leader")
	}
	for _, r := range c.Replicas {
		if !r.Current || r.Offline {
			return fmt.Errorf("%s is behind", r.Name)
		}
	}
	return nil
}

// streamName is natstopic's default.
const streamName = "chert"

func (n *natsServers) stream() (jetstream.Stream, error) {
	js, err := jetstream.New(n.nc)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(n.p.ctx, 10*time.Second)
	defer cancel()
	return js.Stream(ctx, streamName)
}

// kept implements store.
func (n *natsServers) kept() (all [][]id, err error) {
	for range 20 {
		if all, err = n.read(); err == nil || !n.p.sleep(time.Second) { // servers may choose another leader
			break
		}
	}
	return all, err
}

// read reads the stream.
func (n *natsServers) read() ([][]id, error) {
	st, err := n.stream()
	if err != nil {
		return nil, err
	}
	kept := make([][]id, n.p.topics)
	epoch, left := uint64(st.CachedInfo().Created.UnixMilli()), st.CachedInfo().State.Msgs
	ctx, cancel := context.WithTimeout(n.p.ctx, time.Minute)
	defer cancel()
	consumer, err := st.CreateConsumer(ctx, jetstream.ConsumerConfig{HeadersOnly: true, MemoryStorage: true, Replicas: 1,
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: 10 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("a consumer: %w", err)
	}
	for left > 0 {
		batch, err := consumer.Fetch(500, jetstream.FetchMaxWait(10*time.Second))
		if err != nil {
			return nil, err
		}
		before := left
		for m := range batch.Messages() {
			meta, err := m.Metadata()
			if err != nil {
				return nil, err
			}
			name, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(m.Subject(), streamName+".topic."))
			if err != nil {
				return nil, err
			}
			if t, err := strconv.Atoi(string(name)); err == nil && t < len(kept) {
				kept[t] = append(kept[t], id{epoch, uint32(meta.Sequence.Stream)})
			}
			left = meta.NumPending
		}
		if err := batch.Error(); err != nil {
			return nil, fmt.Errorf("with %d events left: %w", left, err)
		}
		if left == before {
			return nil, fmt.Errorf("NATS does not send the last %d events", left)
		}
	}
	return kept, nil
}
