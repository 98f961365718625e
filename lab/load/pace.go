package load

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/chert-http/chert/lab/child"
)

// PaceFolder is where the Go program is that runs a Beside, a Readers, a Stream, a Burst, a Sockets, a Gets or a Paced.
const PaceFolder = "cmd/pace"

// inChild runs a plan in a process on a core of its own, and returns the processor time it took.
func inChild(ctx context.Context, binary string, core int, kind string, plan, res any) (time.Duration, error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return 0, err
	}
	pace, err := child.Run(ctx, child.Command{Args: []string{binary, kind, string(text)}, Env: []string{"GOMAXPROCS=1"}, Cores: []int{core}})
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal([]byte(pace.Stdout), res); err != nil {
		return 0, fmt.Errorf("output of pace: %w\n%s", err, strconv.Quote(pace.Stdout))
	}
	return pace.CPU, nil
}

// Pace is what that process does: args are the kind of a plan and the plan as JSON.
func Pace(ctx context.Context, args []string) (res any, err error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("%d arguments, want two: what to run, and a plan as JSON", len(args))
	}
	switch kind, text := args[0], []byte(args[1]); kind {
	case "beside":
		var plan Beside
		if err := json.Unmarshal(text, &plan); err != nil {
			return nil, err
		}
		return plan.Run(ctx)
	case "readers":
		var plan Readers
		if err := json.Unmarshal(text, &plan); err != nil {
			return nil, err
		}
		return plan.Run(ctx)
	case "stream":
		var plan Stream
		if err := json.Unmarshal(text, &plan); err != nil {
			return nil, err
		}
		return plan.Run(ctx)
	case "burst":
		var plan Burst
		if err := json.Unmarshal(text, &plan); err != nil {
			return nil, err
		}
		return plan.Run(ctx)
	case "sockets":
		var plan Sockets
		if err := json.Unmarshal(text, &plan); err != nil {
			return nil, err
		}
		return plan.Run(ctx)
	case "gets":
		var plan Gets
		if err := json.Unmarshal(text, &plan); err != nil {
			return nil, err
		}
		return plan.Run(ctx)
	case "paced":
		var plan Paced
		if err := json.Unmarshal(text, &plan); err != nil {
			return nil, err
		}
		return plan.Run(ctx)
	default:
		return nil, fmt.Errorf("no plan of kind %q", kind)
	}
}
