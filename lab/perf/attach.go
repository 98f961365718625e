package perf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/chert-http/chert/lab/child"
)

// attached returns when a process has a tracer.
func attached(ctx context.Context, pid int, tracing *child.Child) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if tracer, ok := strings.CutPrefix(line, "TracerPid:"); ok && strings.TrimSpace(tracer) != "0" {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.New("strace has not attached to the process")
		case <-tracing.Done():
			return tracing.Ended()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
