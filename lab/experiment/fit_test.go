package experiment

import (
	"math"
	"testing"
)

// What was made by a model is found again.
func TestFit(t *testing.T) {
	want := model{fixed: 4, wait: 16, connected: 0.0002, byte: 0.0001}
	var points []point
	for _, n := range []int{1, 4, 16, 64, 256, 4096, 16000} {
		points = append(points, point{n, n, 130, want.cost(float64(n), float64(n), 130)})
	}
	for _, bytes := range []int{1 << 10, 100 << 10, 1 << 20} {
		points = append(points, point{64, 64, bytes, want.cost(64, 64, float64(bytes))})
	}
	got, err := fit(points)
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]float64{"fixed": {got.fixed, want.fixed}, "wait": {got.wait, want.wait}, "connected": {got.connected, want.connected}, "byte": {got.byte, want.byte}} {
		if math.Abs(pair[0]-pair[1]) > 1e-6*math.Abs(pair[1]) {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
	for name, points := range map[string][]point{"nothing": nil, "one size": points[:7], "one point": points[:1]} {
		if m, err := fit(points); err == nil && name != "one size" {
			t.Errorf("%s: %+v, want an error", name, m)
		}
	}
}
