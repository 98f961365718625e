package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A source is a commit, cloned into two folders whose paths differ in length, so that a path that gets into a binary
// is noticed.
type source struct {
	root    string // of the repository that is checked out
	temp    string // has everything that is made on the way
	clones  [2]string
	version string    // such as v0.1.0
	commit  string    // its hash
	time    time.Time // of the commit: that of all files of the results
	dirty   bool      // the working tree has changes that the commit has not
}

// versionPattern are the versions that Go, dpkg and rpm order alike: without a part after a plus sign.
var versionPattern = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.]+)?$`)

// openSource clones the commit that is checked out. The caller must call close.
func openSource(ctx context.Context, version string) (s *source, err error) {
	if version != "" && !versionPattern.MatchString(version) {
		return nil, fmt.Errorf("%q is no version such as v0.1.0 or v0.2.0-rc.1", version)
	}
	s = new(source)
	if s.temp, err = os.MkdirTemp("", "chert-packaging-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.root, err = git(ctx, s, ".", "rev-parse", "--show-toplevel"); err != nil {
		return nil, err
	}
	if s.commit, err = git(ctx, s, s.root, "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	stamp, err := git(ctx, s, s.root, "show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return nil, err
	}
	s.time = time.Unix(seconds, 0).UTC()
	changes, err := git(ctx, s, s.root, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	s.dirty = changes != ""
	if err := s.name(ctx, version); err != nil {
		return nil, err
	}
	for i, folder := range []string{"a", "another-folder/of-the-same-commit"} {
		s.clones[i] = filepath.Join(s.temp, filepath.FromSlash(folder), "chert")
		if err := s.clone(ctx, s.clones[i]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// name determines the version. The go command writes it into the binary, from the tag that clone makes.
func (s *source) name(ctx context.Context, version string) error {
	tags, err := git(ctx, s, s.root, "tag", "--points-at", "HEAD", "--list", "v*")
	if err != nil {
		return err
	}
	all := strings.Fields(tags)
	switch {
	case version != "":
	case len(all) > 1:
		return fmt.Errorf("the commit has several versions, choose one with -version: %v", all)
	case len(all) == 1:
		version = all[0]
	default:
		// It sorts below all releases. The g is that of git describe: a hash of digits alone would be a number.
		version = fmt.Sprintf("v0.0.0-%s.g%s", s.time.Format("20060102150405"), s.commit[:12])
	}
	if !versionPattern.MatchString(version) {
		return fmt.Errorf("the tag %q is no version such as v0.1.0 or v0.2.0-rc.1", version)
	}
	s.version = version
	return nil
}

// clone makes a clone whose commit has the tag of the version, and no other.
func (s *source) clone(ctx context.Context, dir string) error {
	if _, err := git(ctx, s, s.root, "clone", "--quiet", "--no-checkout", "--no-tags", s.root, dir); err != nil {
		return err
	}
	if _, err := git(ctx, s, dir, "-c", "advice.detachedHead=false", "checkout", "--quiet", s.commit); err != nil {
		return err
	}
	_, err := git(ctx, s, dir, "tag", s.version)
	return err
}

func (s *source) close() { os.RemoveAll(s.temp) }

// git runs git in a folder, without the user's settings, and returns its output. The checkout may belong to another
// user, as in the containers of hosted CI.
func git(ctx context.Context, s *source, dir string, args ...string) (string, error) {
	config := filepath.Join(s.temp, "gitconfig")
	if _, err := os.Stat(config); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(config, []byte("[safe]\n\tdirectory = *\n[core]\n\tautocrlf = false\n"),
			0o644); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+config, "GIT_CONFIG_NOSYSTEM=1")
	out, err := output(cmd)
	return strings.TrimSpace(string(out)), err
}

// output runs a command; the error has what it wrote to stderr.
func output(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
