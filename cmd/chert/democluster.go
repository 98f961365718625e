package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/cmd/chert/internal/demo"
	"github.com/chert-http/chert/eventstream/redistopic"
	"github.com/chert-http/chert/stats"
	"github.com/chert-http/chert/websocket"
	"github.com/chert-http/chert/websocket/redisroom"
)

// demoInstances is how many instances chert demo --cluster has.
const demoInstances = 3

// demoCluster is what instances of the demo share, and all of them but the first, which is the
// usual one.
type demoCluster struct {
	url       string
	redis     *exec.Cmd // nil if the store is somebody else's
	dir       string    // of redis and its socket
	listeners []net.Listener
	instances []string // the addresses of all
	stores    []demoStore
	servers   []*chert.Server
	demos     []*demo.Demo
	logger    *slog.Logger
}

// demoStore is what an instance shares topics or rooms through.
type demoStore interface {
	io.Closer
	Stats() stats.Store
}

// stats returns the state of the stores of all instances.
func (c *demoCluster) stats() (all []stats.Store) {
	if c == nil {
		return nil
	}
	for i, s := range c.stores { // two of each instance
		one := s.Stats()
		one.Name = fmt.Sprintf("%s, instance %d", one.Name, i/2+1)
		all = append(all, one)
	}
	return all
}

// startCluster starts a Redis, unless url is that of one, and opens the addresses of the other
// instances. first is where the first one is.
func startCluster(url string, first demo.At, logger *slog.Logger) (c *demoCluster, err error) {
	c = &demoCluster{url: url, logger: logger, instances: []string{"http://" + first.Host}}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if first.Host == "" {
		return c, errors.New("--cluster needs an address of TCP: its page connects to all instances")
	}
	if url == "" {
		if err := c.startRedis(); err != nil {
			return c, err
		}
	}
	for range demoInstances - 1 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return c, err
		}
		c.listeners = append(c.listeners, l)
		c.instances = append(c.instances, "http://"+l.Addr().String())
	}
	return c, nil
}

// startRedis starts a server that keeps nothing on disk. It listens at a socket that only this user can reach.
func (c *demoCluster) startRedis() error {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return errors.New("--cluster starts a redis-server, and none is installed; install the package redis-server, " +
			"or name a Redis with --store")
	}
	if c.dir, err = os.MkdirTemp("", "chert-demo"); err != nil {
		return err
	}
	socket := filepath.Join(c.dir, "redis.sock")
	c.redis = exec.Command(program, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", c.dir)
	dieWithParent(c.redis)
	if err := c.redis.Start(); err != nil {
		c.redis = nil
		return err
	}
	c.url = "unix://" + socket
	return nil
}

// redisWait is how long a Redis may take to start.
const redisWait = 10 * time.Second

// share makes what an instance shares with others part of its options.
func (c *demoCluster) share(o *demo.Options) error {
	topics, err := redistopic.OpenURL(c.url,
		&redistopic.Options{Prefix: "chert:demo:topic:", History: 100, Logger: c.logger})
	if err != nil {
		return err
	}
	c.stores = append(c.stores, topics)
	rooms, err := redisroom.OpenURL(c.url, &redisroom.Options{Prefix: "chert:demo:room:", Logger: c.logger})
	if err != nil {
		return err
	}
	c.stores = append(c.stores, rooms)
	for end := time.Now().Add(redisWait); ; time.Sleep(50 * time.Millisecond) {
		if err = topics.Check(context.Background()); err == nil {
			break
		}
		if c.redis == nil || time.Now().After(end) {
			return err
		}
	}
	if o.Feed, err = topics.Topic("feed"); err != nil {
		return err
	}
	room, err := rooms.Room("chat")
	o.Chat, o.Instances = sharedRoom{room}, c.instances
	return err
}

// sharedRoom is the room of the chat.
type sharedRoom struct{ room *redisroom.Room }

func (r sharedRoom) Join(c *websocket.Conn) { r.room.Join(c, nil) }

func (r sharedRoom) Broadcast(t websocket.Type, p []byte) { r.room.Broadcast(t, p) }

// serve serves the other instances.
func (c *demoCluster) serve(errs *log.Logger) error {
	for i, l := range c.listeners {
		o := demo.Options{Logger: c.logger, At: demo.At{Host: l.Addr().String()}}
		if err := c.share(&o); err != nil {
			return err
		}
		d, err := demo.New(o)
		if err != nil {
			return err
		}
		srv := &chert.Server{Handler: d.Handler, ErrorLog: errs}
		c.demos, c.servers = append(c.demos, d), append(c.servers, srv)
		c.listeners[i] = nil // the server's
		go func() {
			if err := srv.Serve(l); err != http.ErrServerClosed {
				errs.Print(err)
			}
		}()
	}
	return nil
}

// close ends the other instances, and what all of them share.
func (c *demoCluster) close() {
	for _, srv := range c.servers {
		srv.Close()
	}
	for _, d := range c.demos {
		d.Close()
	}
	for _, l := range c.listeners {
		if l != nil {
			l.Close()
		}
	}
	for _, s := range c.stores {
		s.Close()
	}
	if c.redis != nil {
		c.redis.Process.Kill()
		c.redis.Wait()
	}
	if c.dir != "" {
		os.RemoveAll(c.dir)
	}
}
