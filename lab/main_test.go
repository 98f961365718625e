package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestList(t *testing.T) {
	var out, log strings.Builder
	if err := run(t.Context(), nil, &out, &log); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"hello", "plain64", "fastturns", "filetree", "slowreaders", "stream", "idle", "experiment NAME", "stages", "iouring", "caddy", "nethttp", "h2o"} {
		if !strings.Contains(out.String(), word) {
			t.Errorf("the list lacks %q:\n%s", word, out.String())
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"-h", "help", "run -h", "run --help", "plot -h", "experiment -help"} {
		var out, log strings.Builder
		if err := run(t.Context(), strings.Fields(args), &out, &log); err != nil || !strings.Contains(out.String(), "--against REVISION") {
			t.Errorf("%s: %v\n%s", args, err, out.String())
		}
	}
}

func TestMistakes(t *testing.T) {
	// A folder cannot be in a file.
	nowhere := filepath.Join(t.TempDir(), "file", "report")
	if err := os.WriteFile(filepath.Dir(nowhere), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args string
		want string
	}{
		{"bench", `no command "bench"`},
		{"run", "run wants a profile"},
		{"plot plain", "plot wants a profile"},
		{"run plain65", `no profile "plain65"`},
		{"run hello --rounds 0", "0 rounds"},
		{"run hello --connections x", `list of numbers "x"`},
		{"run hello nginx", `takes no argument "nginx"`},
		{"run fastslow --rate 0", "0 requests a second"},
		{"run busyidle --idle -1", "-1 idle connections"},
		{"run idle --connections 0", "0 connections"},
		{"run filetree --files 0", "0 files"},
		{"run idle --servers nethttp --vs chert", "neither --server nor --vs"},
		{"run slowreaders --slow 0", "0 slow readers"},
		{"run stream --mib 0", "bodies of 0 MiB"},
		{"experiment", "wants a name: all, pages, stages"},
		{"experiment fast", `no experiment "fast"`},
		{"experiment stages now", "takes one name"},
		{"experiment stages --rounds 0", "at least one round"},
		{"experiment pages --short", "wants --out"},
		{"run hello --json " + nowhere, "--json: open"},
		{"run hello --plot " + nowhere, "--plot: mkdir"},
		{"sizes engine", `takes no argument "engine"`},
		{"sim h2 --seeds 1", `takes no argument "h2"`},
		{"sim --model h9", `no model "h9"; want one of h1, h2,`},
		{"sim --for 0s", "--for want more than 0"},
		{"sim --seeds 0", "--seeds, --requests"},
		{"attack nothing", `no attack "nothing"`},
		{"attack --rounds 0", "--rounds 0: want 1 at least"},
		{"attack --seconds 0", "--seconds 0: want more than 0"},
		{"attack --attackers -1", "--attackers -1: want 0"},
		{"attack --servers chert,nginx", `no server "nginx"; want some of chert,chertgoroutines,nethttp`},
		{"run wsidle --servers nginx", "nginx does not open the WebSockets"},
		{"crossed nowhere", `no path "nowhere"`},
		{"crossed --n 1 plain", "64 requests are too few"},
		{"run stream --only form", `no table has "form" in its name`},
	}
	for _, tt := range tests {
		err := run(t.Context(), strings.Fields(tt.args), &strings.Builder{}, &strings.Builder{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("lab %s: %v, want %q", tt.args, err, tt.want)
		}
	}
	json := filepath.Join(t.TempDir(), "rounds.json")
	if err := run(t.Context(), []string{"run", "hello", "--json", json, "--servers", "none"}, &strings.Builder{}, &strings.Builder{}); err == nil {
		t.Error("a server that there is not is measured")
	}
	if _, err := os.Stat(json); !os.IsNotExist(err) {
		t.Errorf("an empty file is left: %v", err)
	}
}
