package profile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chert-http/chert/lab/measure"
)

// seats says which cores are whose.
type seats struct {
	server []int
	load   int
}

// seats shares out the cores. loadCore is that of wrk or its like, -1 for the first that no server has.
func (c *common) seats(loadCore int) (seats, error) {
	allowed, err := measure.Allowed()
	if err != nil {
		return seats{}, err
	}
	for _, core := range []int{c.core, loadCore} {
		if core >= 0 && !slices.Contains(allowed, core) {
			return seats{}, fmt.Errorf("core %d is not among those this process may use: %v", core, allowed)
		}
	}
	first := max(0, slices.Index(allowed, c.core))
	if c.cores < 1 || len(allowed) < 2 || first+c.cores > len(allowed) {
		return seats{}, fmt.Errorf("%d cores for a server, and one for the load: this process may use %v", c.cores, allowed[first:])
	}
	s := seats{server: allowed[first : first+c.cores], load: loadCore}
	if s.load < 0 {
		// Where none is left, the last one is shared: it says so in the title.
		s.load = allowed[len(allowed)-1]
		for _, core := range slices.Backward(allowed) {
			if !slices.Contains(s.server, core) {
				s.load = core
			}
		}
	}
	return s, nil
}

// all lists the cores in use, each once.
func (s seats) all() []int {
	if slices.Contains(s.server, s.load) {
		return s.server
	}
	return append(slices.Clone(s.server), s.load)
}

// describe says it for a title; load is the name of the program that makes the load.
func (s seats) describe(load string) string {
	cores := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.server)), ","), "[]")
	noun := "core"
	if len(s.server) > 1 {
		noun = "cores"
	}
	text := fmt.Sprintf("server on %s %s, %s on core %d", noun, cores, load, s.load)
	if slices.Contains(s.server, s.load) {
		text += fmt.Sprintf(" (SHARED: requests per second and latency are %s's too)", load)
	}
	return text
}
