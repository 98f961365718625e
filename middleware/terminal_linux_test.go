package middleware

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// terminal opens a pseudo terminal: what is written to the second is read from
// the first.
func terminal(t *testing.T) (screen, program *os.File) {
	t.Helper()
	fd, err := syscall.Open("/dev/ptmx", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no pseudo terminals: ", err)
	}
	screen = os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { screen.Close() })
	control := func(request uintptr, value *uint32) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	var number, unlocked uint32
	control(syscall.TIOCGPTN, &number)
	control(syscall.TIOCSPTLCK, &unlocked)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return screen, program
}

// On a terminal lines appear at once, in the order in which things happened, also
// beside those of other loggers.
func TestAccessLogTerminal(t *testing.T) {
	screen, program := terminal(t)
	l := NewAccessLog(&AccessLogOptions{Output: program, Format: LogCommon})
	defer l.Close()
	lines := bufio.NewReader(screen)
	other := log.New(program, "", 0)
	for i := range 3 {
		plain(l.Wrap(hello), request("GET", fmt.Sprintf("/%d", i), ""))
		other.Print("other ", i)
		for _, want := range []string{fmt.Sprintf(`"GET /%d HTTP/1.1" 200 5`, i), fmt.Sprint("other ", i)} {
			if line, err := lines.ReadString('\n'); err != nil || !strings.HasSuffix(strings.TrimSpace(line), want) {
				t.Fatalf("got %q, %v, want %s", line, err, want)
			}
		}
	}
	// A size that was asked for is kept.
	gathering := NewAccessLog(&AccessLogOptions{Output: program, BufferSize: 1 << 10})
	defer gathering.Close()
	if gathering.lines.unbuffered {
		t.Error("Buffer does not matter")
	}
}

// The stack of a panic has a line for each line on a terminal. It is not
// parallel: the standard logger is shared.
func TestRecoverTerminal(t *testing.T) {
	screen, program := terminal(t)
	log.SetOutput(program)
	defer log.SetOutput(os.Stderr)
	a := plain(Recover(nil)(hf(func(http.ResponseWriter, *http.Request) { panic("on\npurpose") })), request("GET", "/", ""))
	if a.Status != 500 {
		t.Errorf("got %v", a)
	}
	io.WriteString(program, "end\n")
	var lines []string
	for r := bufio.NewReader(screen); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line = strings.TrimRight(line, "\r\n"); line == "end" {
			break
		}
		lines = append(lines, line)
	}
	if len(lines) < 3 || !strings.Contains(lines[0], `ERROR panic in a handler panic="on\npurpose" method=GET path=/`) ||
		!strings.Contains(lines[1], "TestRecoverTerminal") || !strings.Contains(lines[2], "terminal_linux_test.go:") {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
	if strings.Contains(lines[0], "stack=") {
		t.Errorf("the stack is in the line too: %s", lines[0])
	}
}
