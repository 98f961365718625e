package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

func TestHashPassword(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, password, err string }{
		{"secret\n", "secret", ""},
		{"secret\r\nmore", "secret", ""},
		{" with spaces ", " with spaces ", ""},
		{"", "", "the password is empty"},
		{"\n", "", "the password is empty"},
		{strings.Repeat("x", 73), "", "the password has 73 bytes; bcrypt uses at most 72"},
		{strings.Repeat("x", 1<<20), "", "the password has 4096 bytes"},
		{"a\tb", "", "control characters"},
	} {
		cmd := newHashPasswordCmd()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		var out, errs bytes.Buffer
		cmd.SetIn(strings.NewReader(tt.in))
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		cmd.SetArgs([]string{})
		err := cmd.Execute()
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || errs.Len() != 0 {
			t.Errorf("%q: %v %s", tt.in, err, &errs)
			continue
		}
		if tt.err != "" {
			continue
		}
		hash, ok := strings.CutSuffix(out.String(), "\n")
		if err := bcrypt.CompareHashAndPassword([]byte(hash), []byte(tt.password)); !ok || err != nil {
			t.Errorf("%q: %q, %v", tt.in, out.String(), err)
		}
	}
	oneLine(t, exitUsage, `chert: it takes no arguments: other users can see those; the password is read from the terminal or stdin; `+
		`see "chert hash-password --help"`, "hash-password", "secret")
}

// A terminal is asked twice.
func TestAskPassword(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answers   []string
		want, err string
	}{
		{[]string{"secret", "secret"}, "secret", ""},
		{[]string{"secret", "secreT"}, "", "the two passwords differ"},
		{[]string{"secret"}, "", "cannot read the password: EOF"},
	} {
		var out bytes.Buffer
		got, err := askPassword(&out, func() ([]byte, error) {
			if len(tt.answers) == 0 {
				return nil, io.EOF
			}
			answer := tt.answers[0]
			tt.answers = tt.answers[1:]
			return []byte(answer), nil
		})
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%q, %v", got, err)
		}
		if tt.err != "cannot read the password: EOF" && out.String() != "Password: \nAgain: \n" {
			t.Errorf("%q", out.String())
		}
	}
	if _, err := readPassword(failing{}, io.Discard); err == nil || !strings.Contains(err.Error(), "cannot read the password: broken") {
		t.Errorf("%v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken") }
