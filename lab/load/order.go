package load

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Order is a sequence of paths that wrk requests, one after the other over all connections, and again from the start.
type Order struct {
	paths, order string // files: a path on each line, and the number of a path on each line
	n            int
}

// WriteOrder writes what wrk reads into dir, which must stay while the Order is used. No path may have a newline.
func WriteOrder(dir string, paths []string, order []int) (*Order, error) {
	o := &Order{filepath.Join(dir, "paths"), filepath.Join(dir, "order"), len(order)}
	if err := os.WriteFile(o.paths, []byte(strings.Join(paths, "\n")+"\n"), 0o600); err != nil {
		return nil, err
	}
	var lines []byte
	for _, i := range order {
		lines = append(strconv.AppendInt(lines, int64(i), 10), '\n')
	}
	return o, os.WriteFile(o.order, lines, 0o600)
}

// Len is how long the sequence is; 0 for none.
func (o *Order) Len() int {
	if o == nil {
		return 0
	}
	return o.n
}

// script makes all requests before the first is sent: wrk calls it for each of them, on the core that has to keep up
// with the server. from is the index of the first. One more is made before it, with which wrk checks the script.
func (o *Order) script(from int) string {
	return fmt.Sprintf(`local order, n, at = {}, 0, %d
init = function()
	local requests = {}
	for path in io.lines(%q) do requests[#requests + 1] = wrk.format("GET", path) end
	for i in io.lines(%q) do
		n = n + 1
		order[n] = requests[i + 1]
	end
end
request = function()
	at = at %% n + 1
	return order[at]
end
`, from-1, o.paths, o.order)
}
