package sizes

import (
	"strings"
	"testing"
)

func TestAdd(t *testing.T) {
	all := map[string]*Package{}
	err := add(all, "p/p.go", []byte(`package p // a line of code

// A comment.
type T struct {
	T2
	a, b bool
	c    atomic.Bool
	d    int
}

type I interface {
	A(); B()
	J
}

type J interface{ C() }

func f() {
	defer func() { recover() }() // a call
	_ = `+"`over\ntwo lines`"+`
}
`))
	if err != nil {
		t.Fatal(err)
	}
	p := all["p"]
	if p.Lines != 22 || p.Code != 17 || p.Functions != 1 || p.Files != 1 {
		t.Errorf("%d lines, %d of code, %d functions, %d files", p.Lines, p.Code, p.Functions, p.Files)
	}
	if len(p.Types) != 1 || p.Types[0] != (Type{"p.T", 5, 3}) {
		t.Errorf("types %v", p.Types)
	}
	if n, ok := p.methods("I"); n != 3 || !ok {
		t.Errorf("I has %d methods, %v", n, ok)
	}
	if len(p.Recovers) != 1 || p.Recovers[0] != "p/p.go:19" {
		t.Errorf("recover in %v", p.Recovers)
	}
}

func TestReport(t *testing.T) {
	var out, log strings.Builder
	if err := Main(t.Context(), []string{"--sites"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"internal/bridge/h1\n", "websocket\n", "all of these", "internal/poll.Poller", "of godoc"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}
