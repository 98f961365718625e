package profile

import (
	"time"

	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/rival"
)

// cost is what the machine spent during one turn.
type cost struct {
	cpu    measure.CPU // of the server
	steal  float64     // percent, of the cores in use
	others float64     // the same, by processes that are neither the server nor the load
}

// spend measures what a turn costs. drive makes the load and returns the processor time that took.
func spend(s *rival.Server, seats seats, drive func() (time.Duration, error)) (_ cost, err error) {
	defer func() {
		if ended := s.Ended(); ended != nil {
			err = ended // the cause; the other errors are only consequences
		}
	}()
	cores, err := measure.ReadCores(seats.all()...)
	if err != nil {
		return cost{}, err
	}
	before, err := measure.Tree(s.PID())
	if err != nil {
		return cost{}, err
	}
	load, err := drive()
	if err != nil {
		return cost{}, err
	}
	after, err := measure.Tree(s.PID())
	if err != nil {
		return cost{}, err
	}
	coresAfter, err := measure.ReadCores(seats.all()...)
	if err != nil {
		return cost{}, err
	}
	used := after.Sub(before)
	return cost{used, coresAfter.StealSince(cores), coresAfter.OthersSince(cores, used.Total+load)}, nil
}
