package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// toolchain builds the binaries, whichever version is installed: another one would make others.
const toolchain = "go1.26.8"

// A target is a system and a processor.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

var allTargets = []target{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// host is the target that runs here.
var host = target{runtime.GOOS, runtime.GOARCH}

// program is the name of the binary.
func (t target) program() string {
	if t.os == "windows" {
		return "chert.exe"
	}
	return "chert"
}

// A binary is the program for one target.
type binary struct {
	target
	path string
	info *buildinfo.BuildInfo
}

// linkerFlags leave out what only debuggers need: a third of the size. Stack traces and profiles keep their names.
const linkerFlags = "-ldflags=-s -w"

// goCommand prepares the go command in a clone. Only what is listed here determines the binaries.
func goCommand(ctx context.Context, dir string, t target, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN="+toolchain, "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED=0",
		"GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off")
	return cmd
}

// compile builds the program from a clone.
func compile(ctx context.Context, clone, cache string, t target, to string) error {
	cmd := goCommand(ctx, clone, t, "build", "-trimpath", "-buildvcs=true", linkerFlags, "-o", to, "./cmd/chert")
	if cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+cache)
	}
	_, err := output(cmd)
	return err
}

// compileAll builds the program for all targets, and unless o.once is set a second time from the other clone, with an
// empty cache.
func compileAll(ctx context.Context, s *source, o options, out io.Writer) (all []*binary, err error) {
	for _, t := range o.targets {
		b := &binary{target: t, path: filepath.Join(s.temp, "first", t.os, t.arch, t.program())}
		if err := compile(ctx, s.clones[0], "", t, b.path); err != nil {
			return nil, err
		}
		if b.info, err = buildinfo.ReadFile(b.path); err != nil {
			return nil, err
		}
		if err := checkStamp(b.info, s); err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		again := "not compared with a second build"
		if !o.once {
			if err := compareAgain(ctx, s, b); err != nil {
				return nil, err
			}
			again = "the same when built again in another folder"
		}
		info, err := os.Stat(b.path)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "%-14s %4.1f MB, %s\n", t, float64(info.Size())/1e6, again)
		all = append(all, b)
	}
	return all, nil
}

// compareAgain builds a binary once more.
func compareAgain(ctx context.Context, s *source, b *binary) error {
	second := filepath.Join(s.temp, "second", b.os, b.arch, b.program())
	if err := compile(ctx, s.clones[1], filepath.Join(s.temp, "cache"), b.target, second); err != nil {
		return err
	}
	x, err := os.ReadFile(b.path)
	if err != nil {
		return err
	}
	y, err := os.ReadFile(second)
	if err != nil {
		return err
	}
	if !bytes.Equal(x, y) {
		return fmt.Errorf("%s is not reproducible: two builds of commit %s differ", b.target, s.commit)
	}
	return os.Remove(second)
}

// checkStamp compares what the go command has written into a binary with what is wanted.
func checkStamp(info *buildinfo.BuildInfo, s *source) error {
	want := map[string]string{"CGO_ENABLED": "0", "-trimpath": "true", "vcs.revision": s.commit,
		"vcs.modified": "false"}
	for _, setting := range info.Settings {
		if w, ok := want[setting.Key]; ok && w != setting.Value {
			return fmt.Errorf("%s is %s instead of %s", setting.Key, setting.Value, w)
		}
		delete(want, setting.Key)
	}
	switch {
	case len(want) > 0:
		return fmt.Errorf("the build did not record %v", want)
	case info.Main.Version != s.version:
		return fmt.Errorf("its version is %s instead of %s", info.Main.Version, s.version)
	case !strings.HasPrefix(info.GoVersion, toolchain):
		return fmt.Errorf("it was built with %s instead of %s", info.GoVersion, toolchain)
	}
	return nil
}

// hostBinary returns the path of a binary that runs here.
func hostBinary(ctx context.Context, s *source, all []*binary) (string, error) {
	if i := slices.IndexFunc(all, func(b *binary) bool { return b.target == host }); i >= 0 {
		return all[i].path, nil
	}
	path := filepath.Join(s.temp, "host", host.program())
	return path, compile(ctx, s.clones[0], "", host, path)
}
