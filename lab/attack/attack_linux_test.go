package attack

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/lab/child"
)

// Each attack does what it says to a server, in a short form: it sends something, and innocent clients get right answers.
func TestAttacks(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	binary := filepath.Join(t.TempDir(), "target")
	if err := child.Build(ctx, binary, "cmd/target"); err != nil {
		t.Fatal(err)
	}
	o := options{seconds: 0.2, stops: true}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(a.name, "rsa-stay") {
				a.attackers = 1
			}
			a.attackers = min(a.attackers, 10)
			for _, kind := range []string{"chert"} {
				r, err := o.once(ctx, &a, target{kind, binary, kind})
				if err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
				if strings.Contains(r.fault, errAnswer.Error()) {
					t.Errorf("%s: %s", kind, r.fault)
				}
				if row := r.row(&a, target{kind, binary, kind}, r); !strings.HasPrefix(row, "| "+a.name+" | "+kind+" | ") {
					t.Error(row)
				}
			}
		})
	}
}

// What was not measured, or not answered, is no "yes".
func TestVerdict(t *testing.T) {
	ms := func(all ...time.Duration) (d [3]time.Duration) {
		for i := range all {
			d[i] = all[i] * time.Millisecond
		}
		return d
	}
	base := &result{kept: ms(1, 4, 9), fresh: ms(1, 4, 9), asked: 100}
	for want, tt := range map[string]struct {
		a attack
		r result
	}{
		"yes":                   {r: result{kept: ms(3, 7, 99), fresh: ms(3, 7, 99), asked: 10}},
		"no: slower":            {r: result{kept: ms(1, 4, 9), fresh: ms(1, 8, 8), asked: 100}},
		"no: more failed":       {r: result{kept: ms(1, 4, 9), fresh: ms(1, 4, 9), asked: 100, failed: 1}},
		"no: heap above 5":      {a: attack{heap: 5}, r: result{heap: 6, asked: 100}},
		"no: heap not measured": {a: attack{heap: 5}, r: result{unmeasured: true, asked: 100}},
	} {
		if got := tt.r.verdict(&tt.a, base); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, a := range attacks {
		if seen[a.name] || a.about == "" || a.attackers == 0 || a.run == nil {
			t.Errorf("%+v", a.name)
		}
		seen[a.name] = true
	}
	var out strings.Builder
	if err := Main(t.Context(), []string{"-h"}, &out, io.Discard); err == nil || !strings.Contains(out.String(), "ws-pings") {
		t.Errorf("%v, %s", err, &out)
	}
	if err := Main(t.Context(), []string{"no-such"}, &out, io.Discard); err == nil {
		t.Error("an attack of an unknown name")
	}
}
