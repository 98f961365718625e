//go:build unix

package spread

import (
	"io"
	"testing"
)

// Behind a balancer that hashes no client has more than its limit, and when an instance comes or goes about a fourth of
// them move, which get a full bucket once.
func TestSpread(t *testing.T) {
	t.Parallel()
	const clients = 200
	var rows []row
	if err := measure(t.Context(), clients, io.Discard, func(r row) { rows = append(rows, r) }); err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(steps) {
		t.Fatalf("%d steps", len(rows))
	}
	for i, want := range []struct{ admitted, beyond int }{
		{3 * burst * clients, 2 * burst * clients}, {burst * clients, 0}, {0, 0},
		{rows[3].moved * burst, rows[3].moved * burst}, {rows[4].moved * burst, rows[4].moved * burst},
	} {
		if r := rows[i]; r.admitted != want.admitted || r.beyond != want.beyond {
			t.Errorf("%+v, want %+v", r, want)
		}
	}
	for i, want := range map[int]string{2: "0 %", 3: "25.0 %", 4: "25.0 %"} {
		r := rows[i]
		if r.expected != want {
			t.Errorf("%s: chert check says %s, want %s", r.name, r.expected, want)
		}
		if least, most := clients/10, 4*clients/10; i > 2 && (r.moved < least || r.moved > most) || i == 2 && r.moved > 0 {
			t.Errorf("%s: %d clients moved", r.name, r.moved)
		}
	}
}
