package measure

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// The shell waits for one child that has worked and for one that still lives; both must be counted.
func TestTreeCountsChildren(t *testing.T) {
	const work = `i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done`
	cmd := exec.Command("sh", "-c", "sh -c '"+work+"'; sh -c '"+work+"; echo ready; read x' ; true")
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer cmd.Wait()
	defer stdin.Close()
	if _, err := io.ReadFull(stdout, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	tree, err := Tree(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	own, err := process(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	living := tree.Total - own.Total
	// The two did the same work, one counted in nanoseconds and one in ticks.
	if living <= 0 || own.Total < living/3 || own.Total > living*3+2*tick {
		t.Errorf("ended child (with its parent) %v, living child %v: want about the same", own.Total, living)
	}
}

// The clock must agree with the documented counters of /proc.
func TestClockAgreesWithStat(t *testing.T) {
	before, err := Tree(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
	}
	after, err := Tree(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	used := after.Sub(before)
	if diff := (used.Total - used.User - used.System).Abs(); used.Total <= 0 || diff > 5*tick {
		t.Errorf("clock %v, stat %v + %v", used.Total, used.User, used.System)
	}
}

func TestTreeOfNoProcess(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Skip(err)
	}
	if _, err := Tree(cmd.Process.Pid); err == nil {
		t.Error("no error")
	}
}

func TestResident(t *testing.T) {
	before, err := Resident(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const size = 32 << 20
	block := make([]byte, size)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	after, err := Resident(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	// Wide, for the race detector adds its own; a wrong unit is still found.
	if grown := after - before; grown < size*3/4 || grown > size*10 {
		t.Errorf("grew by %d bytes after touching %d", grown, size)
	}
	runtime.KeepAlive(block)
}

func TestAllowed(t *testing.T) {
	cores, err := Allowed()
	if err != nil || len(cores) == 0 {
		t.Fatalf("Allowed() = %v, %v", cores, err)
	}
	if _, err := ReadCores(cores...); err != nil {
		t.Error(err)
	}
}
