package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// Explain puts an error of the Redis at where into one line for operators. It wraps err. timeout
// is how long Redis was waited for; 0 if that is not to be named.
func Explain(err error, where string, timeout time.Duration) error {
	text, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	say := func(what string) error { return &problem{"redis at " + where + " " + what, err} }
	var op *net.OpError
	switch {
	case has("WRONGPASS", "invalid password", "invalid username"):
		return say("refuses the user or password")
	case has("NOAUTH"):
		return say("requires a password")
	case has("AUTH <password> called without any password"):
		return say("has no password, but one was given")
	case has("NOPERM"):
		return say("does not let this user do that: " + text)
	case has("READONLY"):
		return say("is a read-only replica; want its primary")
	case has("MOVED ", "CROSSSLOT"):
		return say("is a node of a cluster; want redis+cluster://")
	case has("CLUSTERDOWN"):
		return say("is a cluster that is not complete")
	case has("cluster support disabled"):
		return say("is not a cluster; want redis://")
	case has("not allowed after non deterministic"):
		return say("is too old; want Redis 5 or later")
	case has("LOADING "):
		return say("is reading its data and does not respond yet")
	case has("MISCONF", "OOM "):
		return say("cannot write: " + text)
	case errors.As(err, &op) && op.Op == "dial" && !op.Timeout():
		return say("cannot be reached: " + op.Err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		if timeout <= 0 {
			return say("does not respond in time")
		}
		return say(fmt.Sprintf("does not respond within %v", timeout))
	}
	return say("failed: " + text)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() || strings.Contains(err.Error(), "pool timeout")
}

// problem is a line for operators and the error that it explains.
type problem struct {
	line string
	err  error
}

func (p *problem) Error() string { return p.line }
func (p *problem) Unwrap() error { return p.err }
