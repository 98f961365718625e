package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/adapt"
	"github.com/spf13/cobra"
)

const adaptLong = `Translate a configuration of nginx or Caddy into one of chert, on stdout:

  chert adapt /etc/nginx/sites-enabled/example.conf > chert.toml
  chert check chert.toml

What has the same meaning is translated. Everything else is left out, with a line
on stderr, and in the output as a comment:

  FILE:LINE: what is left out, and what to use instead

Files that nginx includes are read, from the folder of nginx.conf; those that Caddy
imports are not. Relative paths stay as they are: in nginx they are relative to its
prefix, in chert to the file. Exit codes: 0 if everything was translated, 1 if
something was left out or the file is no such configuration, 2 for a wrong command
line.`

func newAdaptCmd() *cobra.Command {
	from := ""
	cmd := &cobra.Command{
		Use:     "adapt FILE",
		Short:   "Translate a configuration of nginx or Caddy",
		Long:    adaptLong,
		Example: "  chert adapt nginx.conf > chert.toml\n  chert adapt Caddyfile\n  chert adapt --from caddy sites.txt",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New(`want one file, as in "chert adapt nginx.conf"`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			translate := func(text string) (string, []adapt.Note, error) {
				return adapt.NginxFiles(text, included(args[0]))
			}
			switch from {
			case "nginx":
			case "caddy":
				translate = adapt.Caddy
			case "":
				if name := strings.ToLower(filepath.Base(args[0])); strings.Contains(name, "caddy") {
					translate = adapt.Caddy
				}
			default:
				return fmt.Errorf(`--from wants "nginx" or "caddy", not %q`, from)
			}
			return adaptFile(args[0], translate, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "the `program`, nginx or caddy; by default caddy if the file's name has it")
	mustComplete(cmd, "from", cobra.FixedCompletions([]string{"nginx", "caddy"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func adaptFile(file string, translate func(string) (string, []adapt.Note, error), stdout, stderr io.Writer) error {
	f, err := os.Open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failure{fmt.Errorf("%s: no such file", file)}
	case err != nil:
		return failure{fmt.Errorf("%s: cannot read it: %w", file, cause(err))}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, adapt.MaxSize+1))
	if err != nil {
		return failure{fmt.Errorf("%s: cannot read it: %w", file, cause(err))}
	}
	toml, notes, err := translate(string(text))
	var wrong adapt.Note
	if errors.As(err, &wrong) {
		fmt.Fprintln(stderr, noteLine(file, wrong))
		return errSaid
	}
	if err != nil {
		return failure{fmt.Errorf("%s: %w", file, err)}
	}
	fmt.Fprintf(stdout, "# Translated by chert adapt from %s.\n", quote(filepath.Base(file)))
	for _, n := range notes {
		line := noteLine(file, n)
		fmt.Fprintln(stderr, line)
		fmt.Fprintln(stdout, "# "+line)
	}
	fmt.Fprint(stdout, toml)
	if len(notes) > 0 {
		return errSaid
	}
	return nil
}

func noteLine(file string, n adapt.Note) string {
	if n.File != "" {
		file = n.File
	}
	return printable(fmt.Sprintf("%s:%d: %s", file, n.Line, n.Text))
}

// printable replaces what a terminal, or a comment of TOML, must not get.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\ufffd' {
			return '?'
		}
		return r
	}, s)
}
