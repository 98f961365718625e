// Command pace runs a load.Beside, load.Readers, load.Stream, load.Burst, load.Sockets, load.Gets or load.Paced, given as
// JSON, and prints its result as JSON.
// The lab runs it on a core of its own, which it could not do for a part of itself.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/chert-http/chert/lab/load"
)

func main() {
	res, err := load.Pace(context.Background(), os.Args[1:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(res)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pace:", err)
		os.Exit(1)
	}
}
