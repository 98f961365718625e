package stream

import (
	"fmt"
	"io"
	"math/rand"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/conn"
)

// Anything at any time, on many connections.
func TestStress(t *testing.T) {
	t.Parallel()
	seed := time.Now().UnixNano()
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	var clients sync.WaitGroup
	for i := range 40 {
		mine := rand.New(rand.NewSource(seed + int64(i)))
		theirs := rand.New(rand.NewSource(seed - int64(i) - 1))
		f := &fake{idle: 2 * short, partly: short, serve: func(f *fake, line string) conn.Next {
			switch mine.Intn(12) {
			case 0, 1, 2:
				f.WatchPeer()
			case 3:
				f.Fill()
			case 4:
				f.SetReadDeadline(time.Now().Add(time.Millisecond))
			case 5:
				time.Sleep(time.Duration(mine.Intn(1000)) * time.Microsecond)
			case 6:
				if mine.Intn(3) == 0 {
					runtime.Goexit()
				}
			case 7:
				if mine.Intn(3) == 0 {
					return []conn.Next{conn.Close, conn.Linger, conn.Reset}[mine.Intn(3)]
				}
			}
			return echo(f, line)
		}}
		c := open(t, conn.Limits{ReadStall: int64(short), WriteStall: int64(short)}, f)
		clients.Go(func() {
			defer c.Close()
			for j := range 40 {
				line := fmt.Sprintf("%d.%d\n", i, j)
				if k := theirs.Intn(2 * len(line)); k < len(line) {
					io.WriteString(c, line[:k])
					runtime.Gosched()
					io.WriteString(c, line[k:])
				} else {
					io.WriteString(c, line)
				}
				switch theirs.Intn(50) {
				case 0:
					c.Reset()
					return
				case 1:
					c.CloseWrite()
				case 2:
					f.Conn.Drain()
				case 3:
					f.Kill()
				}
				if got, err := c.R.ReadString('\n'); err != nil {
					return
				} else if got != line && got != "late\n" {
					t.Errorf("got %q, want %q", got, line)
				}
			}
		})
	}
	clients.Wait()
}
