package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/chert-http/chert/middleware/basicauth"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const hashPasswordLong = `Read a password and print its hash, of bcrypt or Argon2id, for users of basic_auth in
a configuration file, or after "NAME:" in a file of htpasswd.

In a terminal the password is asked for twice and not shown. Otherwise it is the
first line of stdin; its newline is not a part of it.`

func newHashPasswordCmd() *cobra.Command {
	argon2id := false
	cmd := &cobra.Command{
		Use:               "hash-password",
		Short:             "Hash a password for basic_auth",
		Long:              hashPasswordLong,
		Example:           "  chert hash-password\n  chert hash-password < password.txt",
		Args:              noPassword,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			password, err := readPassword(cmd.InOrStdin(), cmd.ErrOrStderr())
			if err != nil {
				return failure{err}
			}
			makeHash, name := basicauth.Hash, "Hash"
			if argon2id {
				makeHash, name = basicauth.HashArgon2id, "HashArgon2id"
			}
			hash, err := makeHash(password)
			if err != nil {
				return failure{errors.New(strings.TrimPrefix(err.Error(), "basicauth: "+name+": "))}
			}
			fmt.Fprintln(cmd.OutOrStdout(), hash)
			return nil
		},
	}
	cmd.Flags().BoolVar(&argon2id, "argon2id", false, "Argon2id in place of bcrypt: 19 MiB of memory for each attempt")
	return cmd
}

// noPassword does not repeat arguments, which may be a password.
func noPassword(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return errors.New("it takes no arguments: other users can see those; the password is read from the terminal " +
			"or stdin")
	}
	return nil
}

// readPassword reads a password from in, and asks for it if that is a terminal.
func readPassword(in io.Reader, prompt io.Writer) (string, error) {
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		restore, err := restoring(int(f.Fd()))
		if err != nil {
			return "", fmt.Errorf("cannot read the password: %w", err)
		}
		defer restore()
		return askPassword(prompt, func() ([]byte, error) { return term.ReadPassword(int(f.Fd())) })
	}
	line, err := bufio.NewReader(io.LimitReader(in, maxPasswordLine)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("cannot read the password: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), nil
}

// restoring has a signal that ends the program restore the terminal first, which would go on
// without echo. What it returns ends that.
func restoring(terminal int) (end func(), err error) {
	state, err := term.GetState(terminal)
	if err != nil {
		return nil, err
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, append(slices.Clone(interrupts), syscall.SIGTERM)...)
	go func() {
		if _, ok := <-c; ok {
			term.Restore(terminal, state)
			os.Exit(1)
		}
	}()
	return func() {
		signal.Stop(c)
		close(c)
	}, nil
}

// maxPasswordLine is more than a password may have.
const maxPasswordLine = 4096

// askPassword asks for a password twice.
func askPassword(prompt io.Writer, read func() ([]byte, error)) (string, error) {
	var answers [2][]byte
	for i, text := range []string{"Password: ", "Again: "} {
		fmt.Fprint(prompt, text)
		answer, err := read()
		fmt.Fprintln(prompt) // the newline of the user is not shown
		if err != nil {
			return "", fmt.Errorf("cannot read the password: %w", err)
		}
		answers[i] = answer
	}
	if !bytes.Equal(answers[0], answers[1]) {
		return "", errors.New("the two passwords differ")
	}
	return string(answers[0]), nil
}
