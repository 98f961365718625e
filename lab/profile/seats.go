package profile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chert-http/chert/lab/measure"
)

// Seats says which cores are whose.
type Seats struct {
	Server []int
	Load   int
}

// Seat gives servers a number of cores, the first ones that this process may use, and the load the first of the others.
func Seat(cores int) (Seats, error) {
	return (&common{core: -1, cores: cores}).seats(-1)
}

// seats shares out the cores. loadCore is that of wrk or its like, -1 for the first that no server has.
func (c *common) seats(loadCore int) (Seats, error) {
	allowed, err := measure.Allowed()
	if err != nil {
		return Seats{}, err
	}
	for _, core := range []int{c.core, loadCore} {
		if core >= 0 && !slices.Contains(allowed, core) {
			return Seats{}, fmt.Errorf("core %d is not among those this process may use: %v", core, allowed)
		}
	}
	first := max(0, slices.Index(allowed, c.core))
	if c.cores < 1 || len(allowed) < 2 || first+c.cores > len(allowed) {
		return Seats{}, fmt.Errorf("%d cores for a server, and one for the load: this process may use %v", c.cores, allowed[first:])
	}
	s := Seats{Server: allowed[first : first+c.cores], Load: loadCore}
	if s.Load < 0 {
		// Where none is left, the last one is shared: it says so in the title.
		s.Load = allowed[len(allowed)-1]
		for _, core := range slices.Backward(allowed) {
			if !slices.Contains(s.Server, core) {
				s.Load = core
			}
		}
	}
	return s, nil
}

// All lists the cores in use, each once.
func (s Seats) All() []int {
	if slices.Contains(s.Server, s.Load) {
		return s.Server
	}
	return append(slices.Clone(s.Server), s.Load)
}

// Describe says it for a title; load is the name of the program that makes the load.
func (s Seats) Describe(load string) string {
	cores := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.Server)), ","), "[]")
	noun := "core"
	if len(s.Server) > 1 {
		noun = "cores"
	}
	text := fmt.Sprintf("server on %s %s, %s on core %d", noun, cores, load, s.Load)
	if slices.Contains(s.Server, s.Load) {
		text += fmt.Sprintf(" (SHARED: requests per second and latency are %s's too)", load)
	}
	return text
}
