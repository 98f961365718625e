package servertest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// ChildEnv has the argument of StartChild in the child, and is empty elsewhere.
const ChildEnv = "CHERT_TEST_CHILD"

// Child runs the given test of this binary as a process of its own. Its first
// line of output is the server's address.
type Child struct {
	T    *testing.T
	Cmd  *exec.Cmd
	In   io.WriteCloser
	Out  *bufio.Reader
	Addr string
}

func StartChild(t *testing.T, test, arg string) *Child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), ChildEnv+"="+arg, "TMPDIR="+t.TempDir()) // it may be killed
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &Child{T: t, Cmd: cmd, In: in, Out: bufio.NewReader(out)}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	c.Addr = c.Line("addr ")
	return c
}

// Line reads the child's output as far as a line that begins with prefix.
func (c *Child) Line(prefix string) string {
	c.T.Helper()
	for {
		s, err := c.Out.ReadString('\n')
		if err != nil {
			c.T.Fatalf("the child ended before it said %q", prefix)
		}
		if s, ok := strings.CutPrefix(strings.TrimSpace(s), prefix); ok {
			return s
		}
	}
}

// Ends waits for the child's end and checks that it succeeded.
func (c *Child) Ends() {
	c.T.Helper()
	rest, _ := io.ReadAll(c.Out)
	if err := c.Cmd.Wait(); err != nil {
		c.T.Errorf("the child: %v\n%s", err, rest)
	}
}
