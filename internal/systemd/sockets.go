package systemd

import (
	"os"
	"strconv"
	"strings"
)

// A Socket was passed by the service manager, which has opened it.
type Socket struct {
	Name string // FileDescriptorName= of its unit, by default the unit's name
	FD   int
}

// first is the number of the first descriptor.
const first = 3

// maxSockets bounds LISTEN_FDS, which is a text.
const maxSockets = 4096

// Sockets returns the sockets that were passed to this process, in their order, and removes the
// variables, so that no child takes them for its own. It has them at the first call only. The
// caller owns them.
func Sockets() (all []Socket) {
	pid, fds, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	if pid == "" || pid != strconv.Itoa(os.Getpid()) {
		return nil // they are another process's
	}
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"} {
		os.Unsetenv(name)
	}
	n, err := strconv.Atoi(fds)
	if err != nil || n < 1 || n > maxSockets {
		return nil
	}
	list := strings.Split(names, ":")
	for i := range n {
		s := Socket{FD: first + i}
		if i < len(list) {
			s.Name = list[i]
		}
		all = append(all, s)
	}
	return all
}
