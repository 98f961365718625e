package rival

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/link"
)

// Server is a running rival.
type Server struct {
	Spec
	Addr string // host:port, 127.0.0.1 or that of a link
	TLS  string // another one, with TLS; empty for none
	proc *child.Child
	dir  string
	// Of a proxy: the address of the server behind it, and that if it is the proxy's own.
	origin string
	behind *child.Child
	// reserved releases the ports.
	reserved []func()
}

// patience is how long a server may take to answer for the first time.
const patience = 10 * time.Second

// errorLog is the file in a server's folder that Ended shows the end of.
const errorLog = "error.log"

// spare is how many connections a server needs in addition to those requested: the lab's own, and those still
// closing.
const spare = 1000

// Room is what a server may use.
type Room struct {
	Cores       []int // none: any
	Connections int   // for servers that must be configured with the number
	// Files is the folder to serve, if it is files that are wanted.
	Files string
	// TLS has the server listen at a second address, with TLS.
	TLS bool
	// Link is where the server runs; nil for loopback.
	Link *link.Link
	// Origin is the server behind a proxy; empty: one is started.
	Origin string
}

// Start starts a server and waits until it answers. It ends at the latest when ctx does.
func Start(ctx context.Context, spec Spec, room Room) (*Server, error) {
	dir, err := os.MkdirTemp("", "chert-lab-"+spec.Name+"-")
	if err != nil {
		return nil, err
	}
	s := &Server{Spec: spec, dir: dir}
	if err := s.start(ctx, room); err != nil {
		s.Stop()
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, room Room) error {
	var err error
	if s.Addr, err = s.reserve(room.Link); err != nil {
		return err
	}
	if room.TLS {
		if s.TLS, err = s.reserve(room.Link); err != nil {
			return err
		}
	}
	if s.Does.Has(Proxy) {
		if err := s.startOrigin(ctx, room); err != nil {
			return fmt.Errorf("the server behind it: %w", err)
		}
	}
	command, err := s.command(place{s.binary, s.dir, s.Addr, max(1, len(room.Cores)), room.Connections, s.files(room), s.TLS, s.origin})
	if err != nil {
		return err
	}
	if room.Link != nil {
		if command.Args, err = room.Link.Enter(command.Args); err != nil {
			return err
		}
	}
	command.Cores = room.Cores
	if s.proc, err = child.Start(ctx, command); err != nil {
		return err
	}
	return s.wait(ctx)
}

// files is the folder that the server itself serves.
func (s *Server) files(room Room) string {
	if s.Does.Has(Proxy) {
		return ""
	}
	return room.Files
}

// wait returns when the server has answered.
func (s *Server) wait(ctx context.Context) error {
	err := awaitAnswer(ctx, s.Addr, s.Closes, s.proc)
	if ended := s.Ended(); ended != nil {
		return ended
	}
	return err
}

// awaitAnswer returns when a server has answered, or its process has ended.
func awaitAnswer(ctx context.Context, addr string, closes bool, proc *child.Child) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	first := exchange.Get("/")
	first.Close = closes
	for {
		_, last := exchange.Fetch(ctx, addr, first)
		if err := proc.Ended(); err != nil || last == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer in %v: %w", patience, last)
		case <-proc.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// PID is the root of the server's process tree.
func (s *Server) PID() int { return s.proc.PID() }

// Ended is nil while the server runs; afterwards it says how it ended, and shows the end of its log.
func (s *Server) Ended() error {
	err := s.proc.Ended()
	if err == nil {
		return nil
	}
	const enough = 2048
	log, _ := os.ReadFile(filepath.Join(s.dir, errorLog))
	return fmt.Errorf("%s: %w\n%s", s.Name, err, log[max(0, len(log)-enough):])
}

// Stop ends the server and removes its files.
func (s *Server) Stop() {
	if s.proc != nil {
		s.proc.Stop()
	}
	if s.behind != nil {
		s.behind.Stop()
	}
	for _, release := range s.reserved {
		release()
	}
	os.RemoveAll(s.dir)
}

// reserve picks a port and keeps it until the server ends. On a link all ports are free.
func (s *Server) reserve(at *link.Link) (string, error) {
	addr, release, err := freeport.Reserve("127.0.0.1")
	if err != nil {
		return "", err
	}
	s.reserved = append(s.reserved, release)
	if at == nil {
		return addr, nil
	}
	_, port, err := net.SplitHostPort(addr)
	return net.JoinHostPort(at.Addr, port), err
}
