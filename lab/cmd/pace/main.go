// Command pace runs one load.Beside, given as JSON, and prints its result as JSON. The lab runs it on a core of its own,
// which it could not do for a part of itself.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/chert-http/chert/lab/load"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pace:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d arguments, want one: a load.Beside as JSON", len(args))
	}
	var plan load.Beside
	if err := json.Unmarshal([]byte(args[0]), &plan); err != nil {
		return err
	}
	res, err := plan.Run(context.Background())
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(res)
}
