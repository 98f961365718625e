//go:build linux

package sim

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
)

// A Fault is something a kernel or a network may do that is not what a program hopes for.
type Fault uint8

// Faults.
const (
	// LateBytes: a part of what the client has sent arrives later.
	LateBytes Fault = iota
	// ReadAgain: Read returns EAGAIN although there are bytes. An event follows.
	ReadAgain
	// WriteAgain: Write returns EAGAIN although there is room. An event follows.
	WriteAgain
	// ShortWrite: Write or Sendfile accepts less than there is room for.
	ShortWrite
	// LateEvent: an event is reported in a later Wait than it could.
	LateEvent
	// Spurious: an event without a reason.
	Spurious
	// NoDescriptor: Accept fails with EMFILE or ENFILE.
	NoDescriptor
	// NoMemory: Accept or Add fails with ENOBUFS or ENOMEM.
	NoMemory
	// Aborted: Accept fails with ECONNABORTED, and the connection is gone.
	Aborted
	// Lost: what the server has sent is lost with a reset that follows it.
	Lost
	// Jump: the clock advances by much at once.
	Jump
	// NoSendfile: Sendfile cannot send to this connection.
	NoSendfile
	// DiskError: Sendfile cannot read the file.
	DiskError
	faults
)

var faultNames = [faults]string{"late bytes", "read EAGAIN", "write EAGAIN", "short write", "late event",
	"spurious event", "no descriptor", "no memory", "aborted", "lost with a reset", "clock jump", "no sendfile",
	"disk error"}

func (f Fault) String() string { return faultNames[f] }

// Faults is how often each fault happens where it can: 1 in so many, 0 for never.
type Faults [faults]int

// Dice is a source of choices. It is not safe for concurrent use.
type Dice struct {
	*rand.Rand
	src    *rand.PCG
	faults Faults
	// Happened counts the faults.
	Happened [faults]uint64
}

// NewDice makes the dice of a seed.
func NewDice(seed uint64, f Faults) *Dice {
	src := rand.NewPCG(seed, 0x9e3779b97f4a7c15)
	return &Dice{Rand: rand.New(src), src: src, faults: f}
}

// String tells two states of the dice apart.
func (d *Dice) String() string {
	state, _ := d.src.MarshalBinary()
	return fmt.Sprintf("%x", state[len(state)-8:])
}

// Faults sets how often each fault happens from now on.
func (d *Dice) Faults(f Faults) { d.faults = f }

// IntN returns a number from 0 to n-1. It takes one multiplication, since everything that
// happens asks for some; that some numbers are likelier by n/2^64 does not matter here.
func (d *Dice) IntN(n int) int {
	if n <= 0 {
		panic("IntN of nothing")
	}
	hi, _ := bits.Mul64(d.src.Uint64(), uint64(n))
	return int(hi)
}

// OneIn reports true once in n times; never if n is 0.
func (d *Dice) OneIn(n int) bool { return n > 0 && d.IntN(n) == 0 }

// Strikes reports whether f happens now, and counts it.
func (d *Dice) Strikes(f Fault) bool {
	if n := d.faults[f]; n == 0 || d.IntN(n) != 0 {
		return false
	}
	d.Happened[f]++
	return true
}

// Part returns a number from 1 to n, mostly n.
func (d *Dice) Part(n int) int {
	if n <= 1 || d.IntN(4) != 0 {
		return n
	}
	if d.IntN(3) == 0 {
		return 1
	}
	return 1 + d.IntN(n)
}

// Report lists the faults that have happened.
func Report(happened [faults]uint64) string {
	var b strings.Builder
	for f, n := range happened {
		if n > 0 {
			fmt.Fprintf(&b, "%s%s %d", map[bool]string{true: ", "}[b.Len() > 0], faultNames[f], n)
		}
	}
	return b.String()
}

// Sum adds the counts of faults.
func Sum(a, b [faults]uint64) [faults]uint64 {
	for i := range a {
		a[i] += b[i]
	}
	return a
}
