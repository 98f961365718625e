package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisServers is a primary, a replica and a sentinel.
type redisServers struct {
	p        *plan
	sentinel *redisServer
	two      [2]*redisServer
	primary  int

	restarts, failovers, cuts int
}

type redisServer struct {
	p    *plan
	addr string
	args []string
	cmd  *exec.Cmd
	past time.Duration
}

// downAfter is when the sentinel lets the replica take over, in milliseconds.
const downAfter = 2000

func startRedis(p *plan) (*redisServers, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, fmt.Errorf("no redis-server; install the package redis-server")
	}
	r := &redisServers{p: p}
	for i := range r.two {
		s, err := newRedis(p, fmt.Sprint("redis", i))
		if err != nil {
			return nil, err
		}
		r.two[i] = s
		if err := s.start(); err != nil {
			return nil, err
		}
	}
	host, port, _ := net.SplitHostPort(r.two[0].addr)
	if err := r.two[1].do("REPLICAOF", host, port).Err(); err != nil {
		return nil, err
	}
	s, err := newRedis(p, "sentinel")
	if err != nil {
		return nil, err
	}
	_, own, _ := net.SplitHostPort(s.addr)
	file := filepath.Join(p.dir, "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor main %s %s 1\n"+
		"sentinel down-after-milliseconds main %d\nsentinel failover-timeout main 10000\n", own, p.dir, host, port, downAfter)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s.args = []string{file, "--sentinel"}
	r.sentinel = s
	return r, s.start()
}

func newRedis(p *plan, name string) (*redisServer, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(p.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	return &redisServer{p: p, addr: addr, args: []string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "",
		"--appendonly", "yes", "--repl-diskless-sync-delay", "0"}}, nil
}

func (s *redisServer) start() error {
	s.cmd = exec.CommandContext(s.p.ctx, "redis-server", s.args...)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for range 600 {
		if s.do("PING").Err() == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("redis-server on %s does not answer", s.addr)
}

func (s *redisServer) kill() {
	if s.cmd != nil {
		s.past += cpuOf(s.cmd.Process.Pid)
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
	}
}

// do sends a command on a connection of its own.
func (s *redisServer) do(args ...any) *redis.Cmd {
	c := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1, DisableIdentity: true})
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return c.Do(ctx, args...)
}

func (r *redisServers) url() string {
	return "redis+sentinel://" + r.sentinel.addr + "/0?master_name=main"
}

func (r *redisServers) kill() {
	if r.sentinel != nil {
		r.sentinel.kill()
	}
	for _, s := range r.two {
		s.kill()
	}
}

func (r *redisServers) cpu() (d time.Duration) {
	for _, s := range r.two {
		d += s.past
		if s.cmd != nil {
			d += cpuOf(s.cmd.Process.Pid)
		}
	}
	return d
}

func (r *redisServers) name() string { return "Redis" }

func (r *redisServers) faults() string {
	return fmt.Sprintf("Redis restarted: %d, failovers: %d, times all connections to Redis were cut: %d", r.restarts, r.failovers,
		r.cuts)
}

// fail implements store.
func (r *redisServers) fail() error {
	switch n := rand.N(12); {
	case n < 6:
		return r.cut()
	case n < 9:
		return r.restart()
	}
	return r.failover()
}

// cut ends all connections to the primary.
func (r *redisServers) cut() error {
	r.cuts++
	return r.now().do("CLIENT", "KILL", "TYPE", "normal").Err()
}

// restart kills the primary and starts it again before the sentinel acts, with its data.
func (r *redisServers) restart() error {
	r.restarts++
	s := r.now()
	s.kill()
	r.p.sleep(rand.N(500 * time.Millisecond))
	return s.start()
}

// failover kills the primary until the replica has taken over.
func (r *redisServers) failover() error {
	old := r.now()
	replica := r.two[1-r.primary]
	if text, _ := replica.do("INFO", "replication").Text(); !strings.Contains(text, "master_link_status:up") {
		return nil // it is not ready
	}
	r.failovers++
	old.kill()
	for range 300 {
		if r.now() != old {
			break
		}
		if !r.p.sleep(100 * time.Millisecond) {
			return nil
		}
	}
	r.p.sleep(rand.N(time.Second))
	return old.start() // the sentinel makes it a replica
}

// heal waits until all is well.
func (r *redisServers) heal() error {
	for range 300 {
		if text, _ := r.now().do("INFO", "replication").Text(); strings.Contains(text, "role:master") &&
			strings.Contains(text, "state=online") {
			r.p.sleep(3 * time.Second)
			return nil
		}
		if !r.p.sleep(100 * time.Millisecond) {
			break
		}
	}
	return fmt.Errorf("there is no primary with a replica after half a minute")
}

// kept implements store.
func (r *redisServers) kept() ([][]id, error) {
	kept := make([][]id, r.p.topics)
	for t := range kept {
		entries, err := r.now().do("XRANGE", "chert:topic:{0}"+strconv.Itoa(t), "-", "+").Slice()
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			ms, seq := parseID(e.([]any)[0].(string))
			kept[t] = append(kept[t], id{ms, seq})
		}
	}
	return kept, nil
}

// reads returns how many XREAD the primary has done.
func (r *redisServers) reads() int {
	text, _ := r.now().do("INFO", "commandstats").Text()
	_, rest, ok := strings.Cut(text, "cmdstat_xread:calls=")
	if !ok {
		return 0
	}
	n, _ := strconv.Atoi(rest[:strings.IndexByte(rest, ',')])
	return n
}

// now returns the primary as the sentinel knows it.
func (r *redisServers) now() *redisServer {
	if at, err := r.sentinel.do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main").StringSlice(); err == nil && len(at) == 2 {
		for i, s := range r.two {
			if s.addr == net.JoinHostPort(at[0], at[1]) {
				r.primary = i
			}
		}
	}
	return r.two[r.primary]
}
