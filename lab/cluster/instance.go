package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/eventstream/natstopic"
	"github.com/chert-http/chert/eventstream/redistopic"
)

// maxConns is how many clients an instance has at most: the others', too, when they have been killed.
const maxConns = 19000

// history is how many events of a topic a store keeps.
const history = 2000

// instance is the process that serves.
func instance(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("instance", flag.ContinueOnError)
	addr := f.String("addr", "", "where it listens")
	url := f.String("store", "", "the store; without one topics are in memory")
	if err := f.Parse(args); err != nil {
		return err
	}
	topic := inMemory()
	switch {
	case strings.HasPrefix(*url, "nats:"):
		store, err := natstopic.Open(*url, natsOptions())
		if err != nil {
			return err
		}
		defer store.Close()
		topic = store.Topic
	case *url != "":
		store, err := redistopic.OpenURL(*url, &redistopic.Options{History: history})
		if err != nil {
			return err
		}
		defer store.Close()
		topic = store.Topic
	}
	feed, err := eventstream.New(&eventstream.Options{OnOpen: func(s *eventstream.Stream, r *http.Request) {
		t, err := topic(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			s.Close()
			return
		}
		t.Join(s)
	}, Retry: -1})
	if err != nil {
		return err
	}
	srv := &chert.Server{Addr: *addr, MaxConns: maxConns, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			feed.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		t, err := topic(strings.TrimPrefix(r.URL.Path, "/"))
		if err == nil {
			e := eventstream.Event{Data: string(body)}
			if *url == "" {
				e.ID = e.Data
			}
			_, err = t.Publish(e)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})}
	go func() {
		<-ctx.Done()
		srv.Close()
	}()
	if err := srv.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// inMemory returns topics of this process by their names.
func inMemory() func(name string) (*eventstream.Topic, error) {
	var mu sync.Mutex
	all := make(map[string]*eventstream.Topic)
	return func(name string) (*eventstream.Topic, error) {
		mu.Lock()
		defer mu.Unlock()
		if t := all[name]; t != nil {
			return t, nil
		}
		t, err := eventstream.NewTopic(nil)
		all[name] = t
		return t, err
	}
}

// server is an instance as the command sees it.
type server struct {
	p    *plan
	args []string
	addr string
	cmd  *exec.Cmd
	past time.Duration // the processor's time of earlier lives
}

// servers are all instances.
type servers []*server

// startServers starts instances, at addresses that it adds to those of p.
func (p *plan) startServers(store string) (all servers, err error) {
	for range p.instances {
		addr, err := freeAddr()
		if err != nil {
			return nil, err
		}
		p.addrs = append(p.addrs, addr)
	}
	for _, addr := range p.addrs {
		s := &server{p: p, addr: addr, args: []string{"instance", "-addr", addr, "-store", store}}
		if err := s.start(); err != nil {
			all.kill()
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (all servers) kill() {
	for _, s := range all {
		s.kill()
	}
}

func (all servers) cpu() (d time.Duration) {
	for _, s := range all {
		d += s.cpu()
	}
	return d
}

// start starts it, and waits until it listens.
func (s *server) start() error {
	s.cmd = exec.CommandContext(s.p.ctx, s.p.self, s.args...)
	s.cmd.Stderr = s.p.log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for range 600 {
		res, err := http.Head("http://" + s.addr + "/0")
		if err == nil {
			res.Body.Close()
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("the instance on %s does not answer", s.addr)
}

// kill ends it as a crash does.
func (s *server) kill() {
	if s.cmd != nil {
		s.past += s.cpu()
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *server) cpu() time.Duration {
	if s.cmd == nil {
		return s.past
	}
	return s.past + cpuOf(s.cmd.Process.Pid)
}

// cpuOf returns the processor's time of a process.
func cpuOf(pid int) time.Duration {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b)[strings.LastIndexByte(string(b), ')')+1:])
	var ticks int
	for _, f := range fields[11:13] { // utime and stime, of proc(5)
		n, _ := strconv.Atoi(f)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}
