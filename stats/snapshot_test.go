package stats

import (
	"encoding/json"
	"testing"
)

// JSON has names, which programs of other versions understand.
func TestWayText(t *testing.T) {
	t.Parallel()
	for w, name := range map[Way]string{Inline: "inline", Pooled: "pooled", Direct: "direct", Goroutine: "goroutine", Ways: "unknown"} {
		b, err := json.Marshal(Requests{Way: w, N: 3})
		if want := `{"Protocol":"","Class":0,"Way":"` + name + `","N":3}`; err != nil || string(b) != want {
			t.Errorf("%s, %v, want %s", b, err, want)
		}
		var r Requests
		if err := json.Unmarshal(b, &r); err != nil || r.Way != w || r.N != 3 {
			t.Errorf("%s is read as %+v, %v", b, r, err)
		}
	}
	var r Requests
	if err := json.Unmarshal([]byte(`{"Way":"elsewhere"}`), &r); err != nil || r.Way.String() != "unknown" {
		t.Errorf("%+v, %v", r, err)
	}
}
