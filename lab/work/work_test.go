package work

import (
	"encoding/json"
	"testing"
)

func TestItems(t *testing.T) {
	text, err := ItemsJSON()
	if err != nil {
		t.Fatal(err)
	}
	var items []item
	if err := json.Unmarshal(text, &items); err != nil || len(items) != 10 || items[9].Name != "vise" {
		t.Errorf("%s: %v", text, err)
	}
}

func TestTurning(t *testing.T) {
	var turning Turning
	turning.Do()
	before := sink.Swap(0)
	defer sink.Store(before)
	if err := turning.To("rest"); err == nil {
		t.Error("no error for work that is not there")
	}
	if turning.Do(); sink.Load() != 0 {
		t.Error("computes before it was told to")
	}
	if err := turning.To("compute"); err != nil {
		t.Fatal(err)
	}
	if turning.Do(); sink.Load() == 0 {
		t.Error("does not compute")
	}
}

func BenchmarkCompute(b *testing.B) {
	for b.Loop() {
		Compute()
	}
}
