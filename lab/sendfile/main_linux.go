// Command sendfile serves the files of a folder with edge-triggered epoll and sendfile, as a C server does that was
// published with a list of what made it fast. Each item of the list is a flag, to be taken back on its own.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"github.com/chert-http/chert/lab/serve"
	"github.com/chert-http/chert/lab/stages/socket"
)

var (
	workers = flag.Int("workers", max(2, runtime.NumCPU()), "how many threads serve")
	handoff = flag.Bool("handoff", false, "one thread accepts and hands connections over with an eventfd, instead of a socket with SO_REUSEPORT for each")
	dup     = flag.Bool("dup", false, "duplicate the file's descriptor for each response")
	cork    = flag.String("cork", "large", "when to set TCP_CORK around a response: always, large (above 16 KiB) or never")
)

func main() { serve.Files(run) }

// file is open as long as the server runs.
type file struct {
	fd, size int
	head     []byte
}

func run(addr, dir string) error {
	files, err := openAll(dir)
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(*workers + 1)
	failed := make(chan error)
	all := make([]*worker, *workers)
	for i := range all {
		listener := -1
		if !*handoff {
			if listener, err = socket.Listen(addr, true); err != nil {
				return err
			}
		}
		if all[i], err = newWorker(listener, files); err != nil {
			return err
		}
		go func() {
			runtime.LockOSThread()
			failed <- all[i].run()
		}()
	}
	if *handoff {
		go func() { failed <- acceptFor(addr, all) }()
	}
	return <-failed
}

// openAll opens the files that are in a folder, and "/" as a greeting, without a file.
func openAll(dir string) (map[string]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]file{"/": {fd: -1, head: []byte(socket.Kept)}}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		fd, err := syscall.Open(filepath.Join(dir, e.Name()), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n", info.Size())
		all["/"+e.Name()] = file{fd, int(info.Size()), []byte(head)}
	}
	return all, nil
}

// inbox is where the accepting thread leaves connections for a worker.
type inbox struct {
	mu    sync.Mutex
	conns []int
	event int // an eventfd that the worker's epoll watches
}

// acceptFor is the thread that accepts for all: a system call, a lock and a wake-up more for each connection.
func acceptFor(addr string, all []*worker) error {
	runtime.LockOSThread()
	listener, err := socket.Listen(addr, false)
	if err != nil {
		return err
	}
	one := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	for turn := 0; ; turn++ {
		fd, _, err := syscall.Accept4(listener, syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
		if err == syscall.EINTR || err == syscall.ECONNABORTED {
			continue
		}
		if err != nil {
			return err
		}
		in := &all[turn%len(all)].inbox
		in.mu.Lock()
		in.conns = append(in.conns, fd)
		in.mu.Unlock()
		if _, err := syscall.Write(in.event, one); err != nil {
			return err
		}
	}
}

// notFound is what everything else is answered with.
var notFound = file{fd: -1, head: []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")}
