package profile

import (
	"time"

	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/rival"
)

// Cost is what the machine spent during one turn.
type Cost struct {
	CPU    measure.CPU // of the server
	Steal  float64     // percent, of the cores in use
	Others float64     // the same, by processes that are neither the server nor the load
}

// Spend measures what a turn costs. drive makes the load and returns the processor time that took.
func Spend(s *rival.Server, seats Seats, drive func() (time.Duration, error)) (_ Cost, err error) {
	defer func() {
		if ended := s.Ended(); ended != nil {
			err = ended // the cause; the other errors are only consequences
		}
	}()
	cores, err := measure.ReadCores(seats.All()...)
	if err != nil {
		return Cost{}, err
	}
	before, err := measure.Tree(s.PID())
	if err != nil {
		return Cost{}, err
	}
	load, err := drive()
	if err != nil {
		return Cost{}, err
	}
	after, err := measure.Tree(s.PID())
	if err != nil {
		return Cost{}, err
	}
	coresAfter, err := measure.ReadCores(seats.All()...)
	if err != nil {
		return Cost{}, err
	}
	used := after.Sub(before)
	return Cost{used, coresAfter.StealSince(cores), coresAfter.OthersSince(cores, used.Total+load)}, nil
}
