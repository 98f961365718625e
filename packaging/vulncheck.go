package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// vulnDB is the database of Go's own vulnerabilities and those of its modules.
const vulnDB = "https://vuln.go.dev"

// vulnerabilities runs govulncheck, whose version go.mod has, on the source of the program, in dir. A vulnerability
// whose code can be reached is an error, and so is a database that cannot be read, unless offline is set. db is the
// database's URL, which is file:///... for a folder.
func vulnerabilities(ctx context.Context, dir, db string, offline bool, out io.Writer) error {
	// The tool is compiled for this machine, and looks at the source with the toolchain of the release.
	cmd := exec.CommandContext(ctx, "go", "tool", "-modfile="+filepath.Join("packaging", "go.mod"), "govulncheck",
		"-db", db, "./cmd/chert")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "GOTOOLCHAIN="+toolchain)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	switch {
	case err == nil:
		fmt.Fprintln(out, "govulncheck: no known vulnerability can be reached")
		return nil
	case !unreachable(said.String()):
		return fmt.Errorf("govulncheck: %w\n%s", err, said.String())
	case offline:
		fmt.Fprintln(out,
			"NOT CHECKED FOR VULNERABILITIES: the database of govulncheck cannot be reached, and -offline is set. "+
				"Do not publish a build of this.")
		return nil
	default:
		return fmt.Errorf("the database of govulncheck cannot be reached; -offline goes on without the check\n%s",
			strings.TrimSpace(said.String()))
	}
}

// vulncheckMain checks the working tree, with what is not committed.
func vulncheckMain(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("vulncheck", flag.ContinueOnError)
	flags.SetOutput(out)
	db := flags.String("db", vulnDB, "the `URL` of the database; file:///... for a folder")
	offline := flags.Bool("offline", false, "succeed if the database of vulnerabilities cannot be reached")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := filepath.Abs("..") // this module's folder is packaging
	if err != nil {
		return err
	}
	return vulnerabilities(ctx, root, *db, *offline, out)
}

// unreachable reports whether govulncheck has failed because of its database, not because of what it has found.
func unreachable(said string) bool {
	return strings.Contains(said, "fetching vulnerabilities") || strings.Contains(said, "vuln.go.dev") &&
		strings.Contains(said, "dial")
}
