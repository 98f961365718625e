package crossed

import (
	"slices"
	"testing"

	"github.com/chert-http/chert/lab/request"
)

// TestCount checks with a real server that every path crosses what it must.
func TestCount(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles chert once more")
	}
	all, err := Count(t.Context(), request.Paths(), 16, 20)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		reads := func(f Function) bool { return f.File == "internal/sys/sys_linux.go" && f.Name == "Read" }
		if !slices.ContainsFunc(c.Functions, reads) {
			t.Errorf("%s does not read: %v", c.Path.Name, c.Functions)
		}
		if n := len(c.Functions); n < 50 || n > 400 {
			t.Errorf("%s crosses %d functions", c.Path.Name, n)
		}
	}
}
