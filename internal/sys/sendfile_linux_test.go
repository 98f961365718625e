package sys

import (
	"os"
	"testing"
)

// Offsets that 32 bits do not hold.
func TestSendfileOffset(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/sparse")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, tt := range []struct {
		offset int64
		mark   string
	}{{0, "begin"}, {1<<31 - 2, "2 GiB"}, {1 << 32, "4 GiB"}, {1<<33 + 5, "8 GiB"}} {
		if _, err := file.WriteAt([]byte(tt.mark), tt.offset); err != nil {
			t.Skip("no sparse files here: ", err)
		}
		to, client := pair(t)
		n, e := Sendfile(to, int(file.Fd()), tt.offset, len(tt.mark))
		got := make([]byte, 100)
		m, _ := Read(client, got)
		if n != len(tt.mark) || e != 0 || string(got[:m]) != tt.mark {
			t.Errorf("from %d: got %d, %v, %q, want %q", tt.offset, n, e, got[:m], tt.mark)
		}
	}
}
