package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/authority"
	"github.com/spf13/cobra"
)

const certLong = `Make a certificate for names and addresses, signed by an authority of your own:
for development, and for private networks whose machines can trust it.

The folder of --dir gets ca.pem and ca-key.pem, the authority, unless it has one
already, and cert.pem and key.pem for the server. With --client the argument is
the name of a client, and its certificate client.pem and client-key.pem.

A new authority can sign for localhost, the names below .localhost, .test,
.example, .local, .internal and .home.arpa, private addresses, and the names of
this call with the names below them: if its key is stolen, other sites are safe.
--unconstrained makes one for all names. It is valid for ten years. To trust it,
which is needed once on each machine:

%s
ca-key.pem stays secret: with it, others can pose as these names. Servers need
cert.pem and key.pem only.`

const certExample = `  chert cert localhost 127.0.0.1 ::1
  chert cert --dir certs '*.example.test' example.test 192.168.1.20
  chert cert --dir certs --client alice`

// trusting explains how to trust an authority in a file.
func trusting(ca string) string {
	return fmt.Sprintf(`  curl:              curl --cacert %[1]s https://...
  Debian, Ubuntu:    sudo cp %[1]s /usr/local/share/ca-certificates/chert-ca.crt && sudo update-ca-certificates
  Fedora:            sudo trust anchor --store %[1]s
  macOS:             sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain %[1]s
  Windows:           certutil -addstore -f ROOT %[1]s (as administrator)
  Firefox:           Settings, Privacy & Security, View Certificates, Authorities, Import, and choose %[1]s
  Chromium on Linux: certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n chert -i %[1]s (of libnss3-tools)
`, ca)
}

// certOptions is the command line of "chert cert".
type certOptions struct {
	dir, name     string
	days          int
	client        bool
	unconstrained bool
	force         bool
}

func newCertCmd() *cobra.Command {
	o := certOptions{dir: ".", days: authority.MaxDays}
	cmd := &cobra.Command{
		Use:               "cert NAME...",
		Short:             "Make a certificate and an authority that signs it",
		Long:              fmt.Sprintf(certLong, trusting("ca.pem")),
		Example:           certExample,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := o.check(args)
			if err != nil {
				return err
			}
			if err := o.run(names, args, cmd.OutOrStdout()); err != nil {
				return failure{err}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.dir, "dir", o.dir, "the `folder` of the files; created if it does not exist")
	f.StringVar(&o.name, "name", "", "call the files `NAME`.pem and NAME-key.pem instead of cert.pem and key.pem")
	f.Var((*numberFlag)(&o.days), "days", fmt.Sprintf("how long the certificate is valid; at most %d, the limit of "+
		"browsers", authority.MaxDays))
	addBool(cmd, &o.client, "client", "", "make a certificate with which the client of this name authenticates")
	addBool(cmd, &o.unconstrained, "unconstrained", "", "let a new authority sign for all names")
	addBool(cmd, &o.force, "force", "", "replace an existing certificate; an authority is never replaced")
	mustComplete(cmd, "dir", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
	mustComplete(cmd, "name", cobra.NoFileCompletions)
	mustComplete(cmd, "days", cobra.NoFileCompletions)
	return cmd
}

// check checks the command line. The names are empty for a client.
func (o *certOptions) check(args []string) (names authority.Names, err error) {
	switch {
	case o.days < 1 || o.days > authority.MaxDays:
		return names, fmt.Errorf("--days wants a number from 1 to %d", authority.MaxDays)
	case o.name != "" && (o.name != filepath.Base(o.name) || o.name == "." || o.name == ".."):
		return names, errors.New("--name wants a name without a folder; that is for --dir")
	case o.name == "ca":
		return names, errors.New("--name ca is the authority's; choose another")
	case o.dir == "":
		return names, errors.New("--dir wants the name of a folder")
	case o.client && len(args) != 1:
		return names, errors.New(`--client wants one name, as in "chert cert --client alice"`)
	case o.client && (args[0] == "" || len(args[0]) > 64):
		return names, errors.New("--client wants a name of 1 to 64 bytes")
	case o.client:
		return names, nil
	case len(args) == 0:
		return names, errors.New(`no names given; want those that clients use, as in "chert cert localhost 127.0.0.1 ` +
			`::1"`)
	}
	return authority.ParseNames(args)
}

// files returns the file names of the certificate and of its key.
func (o *certOptions) files() (cert, key string) {
	name := o.name
	switch {
	case name == "" && o.client:
		name = "client"
	case name == "":
		return filepath.Join(o.dir, "cert.pem"), filepath.Join(o.dir, "key.pem")
	}
	return filepath.Join(o.dir, name+".pem"), filepath.Join(o.dir, name+"-key.pem")
}

func (o *certOptions) run(names authority.Names, args []string, stdout io.Writer) error {
	now := time.Now()
	cert, key := o.files()
	if !o.force {
		for _, path := range []string{cert, key} {
			if err := absent(path); err != nil {
				return err
			}
		}
	}
	ca, caFiles, err := o.authority(names, now)
	if err != nil {
		return err
	}
	var pair authority.Pair
	var until time.Time
	who := names.String()
	if o.client {
		who = "the client " + quote(args[0])
		pair, until, err = ca.Client(args[0], o.days, now)
	} else {
		pair, until, err = ca.Server(names, o.days, now)
	}
	if _, ok := errors.AsType[*authority.NotPermittedError](err); ok {
		return fmt.Errorf("%w: %s was made for other names; make another authority for these in another --dir",
			err, quote(filepath.Join(o.dir, caCert)))
	}
	if err != nil {
		return fmt.Errorf("cannot sign with %s: %w", quote(filepath.Join(o.dir, caKey)), err)
	}
	made := []pemFile{{key, pair.Key, secretMode}, {cert, pair.Cert, publicMode}}
	if err := writeFiles(o.dir, caFiles, made, o.force); err != nil {
		return err
	}
	o.tell(stdout, ca, caFiles != nil, who, until)
	return nil
}

// tell prints what was made, and how to use it.
func (o *certOptions) tell(w io.Writer, ca *authority.Authority, made bool, who string, until time.Time) {
	cert, key := o.files()
	path := quote(filepath.Join(o.dir, caCert))
	if made {
		fmt.Fprintf(w, "chert: made an authority, valid until %s: %s and its secret key %s\n",
			ca.NotAfter().Format(time.DateOnly), path, quote(filepath.Join(o.dir, caKey)))
	} else {
		fmt.Fprintf(w, "chert: signed by the authority %s\n", path)
	}
	fmt.Fprintf(w, "chert: made a certificate for %s, valid until %s: %s and its key %s\n", who,
		until.Format(time.DateOnly), quote(cert), quote(key))
	if made {
		fmt.Fprintf(w, "\nTo trust the authority, which is needed once on each machine:\n\n%s", trusting(path))
	}
	if o.client {
		fmt.Fprintf(w, "\nTo use the certificate: curl --cert %s --key %s --cacert %s https://...\n", quote(cert),
			quote(key), path)
	}
}
