package systemd

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// The states of a service; see sd_notify(3).
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	Alive    = "WATCHDOG=1"
)

// Reloading is the state while a service replaces its configuration or itself, until Ready. It is
// of now.
func Reloading() string {
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", sys.Monotonic()/int64(time.Microsecond))
}

// MainPID names the process that is the service from now on. Only the one before it may.
func MainPID(pid int) string { return "MAINPID=" + strconv.Itoa(pid) }

// Status is a text that systemctl shows. A line break would begin another assignment.
func Status(text string) string {
	return "STATUS=" + strings.NewReplacer("\n", " ", "\r", " ").Replace(text)
}

// Notify sends states to the service manager in one message. It does nothing and returns nil if
// none wants to know. Safe for concurrent use.
func Notify(states ...string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	// A name that begins with @ is an abstract one for package net too.
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("cannot notify the service manager: %w", err)
	}
	defer c.Close()
	c.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err = c.Write([]byte(strings.Join(states, "\n"))); err != nil {
		return fmt.Errorf("cannot notify the service manager: %w", err)
	}
	return nil
}

// Watchdog returns how often Alive is due at the latest, 0 if it is not expected of this process.
func Watchdog() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || usec <= 0 || usec > int64(24*time.Hour/time.Microsecond) {
		return 0
	}
	return time.Duration(usec) * time.Microsecond
}
