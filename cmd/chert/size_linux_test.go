package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// What calls methods by names that the linker does not know makes it keep the exported
// methods of every type: with text/template the program had 43 MB instead of 30.
func TestNoTemplates(t *testing.T) {
	t.Parallel()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, "text/template.(*state)") {
			t.Fatalf("the program executes templates: it has %s", s.Name)
		}
	}
}

// The binary of make build needs no libraries, so it runs on any Linux, and in an empty
// container. make static builds it and runs this test.
func TestStatic(t *testing.T) {
	t.Parallel()
	bin := os.Getenv("CHERT_BINARY")
	if bin == "" {
		t.Skip("CHERT_BINARY names no binary; make static does")
	}
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it has %v: it is linked to libraries", p.Type)
		}
	}
	if out, err := exec.CommandContext(t.Context(), bin, "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "chert ") {
		t.Errorf("%v: %s", err, out)
	}
}
