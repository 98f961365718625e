package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
	"github.com/spf13/cobra"
)

// tlsFlags are the flags of TLS. A configuration file has keys for them instead.
type tlsFlags struct {
	cert, key  string
	self       bool
	auto       checkedList
	storage    string
	email, ca  checked
	staging    bool
	clientCA   string
	min        checked
	hsts       checked
	subdomains bool
	redirect   checked
	http3      bool
	names      []string // of all these flags; set by add
}

func (f *tlsFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	file := func(p *string, name, usage string) {
		f.names = append(f.names, name)
		flags.StringVar(p, name, "", usage)
	}
	value := func(v value, name, usage string) {
		f.names = append(f.names, name)
		flags.Var(v, name, usage)
		complete := cobra.NoFileCompletions
		if name == "tls-min" {
			complete = cobra.FixedCompletions([]string{"1.2", "1.3"}, cobra.ShellCompDirectiveNoFileComp)
		}
		mustComplete(cmd, name, complete)
	}
	boolean := func(p *bool, name, usage string) {
		f.names = append(f.names, name)
		addBool(cmd, p, name, "", usage)
	}
	f.email.check, f.ca.check = config.CheckEmail, config.CheckCA
	f.auto.check = func(s string) error {
		err := config.CheckAutoName(s)
		if err != nil { // it names what a file has
			flags := strings.NewReplacer("tls_self", "--tls-self", "tls_cert", "--tls-cert")
			err = errors.New(flags.Replace(err.Error()))
		}
		return err
	}
	f.min = checked{text: "1.2", kind: "version", check: config.CheckTLSMin}
	f.hsts.check = func(s string) error {
		_, err := config.ParseHSTS(s)
		return err
	}
	f.redirect.check = func(s string) error {
		e, err := parseEndpoint(s)
		if err == nil && e.network != "tcp" {
			err = errors.New("want host:port, :port or a port")
		}
		return err
	}
	f.auto.kind, f.email.kind, f.ca.kind, f.hsts.kind, f.redirect.kind = "name", "address", "URL", "duration", "address"

	file(&f.cert, "tls-cert", "serve TLS with the certificate, and its chain, of this `file` in PEM")
	file(&f.key, "tls-key", "the `file` with the key of --tls-cert")
	boolean(&f.self, "tls-self", "serve TLS with a certificate of an authority of chert's own, for development")
	value(&f.auto, "tls-auto", "serve TLS with a certificate for this name that Let's Encrypt or --tls-ca issues;\n"+
		"may be repeated")
	f.names = append(f.names, "tls-storage")
	flags.StringVar(&f.storage, "tls-storage", "", "the `folder` where --tls-auto and --tls-self keep keys and "+
		"certificates")
	mustComplete(cmd, "tls-storage", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
	value(&f.email, "tls-email", "the address that the authority of --tls-auto may write to")
	value(&f.ca, "tls-ca", "the directory of another ACME authority for --tls-auto")
	boolean(&f.staging, "tls-staging", "let --tls-auto use Let's Encrypt's authority for tries, which browsers do not "+
		"trust")
	file(&f.clientCA, "client-ca", "admit only clients with a certificate that an authority in this `file` has signed")
	value(&f.min, "tls-min", "the oldest version of TLS: 1.2 or 1.3")
	value(&f.hsts, "hsts", "let browsers use only TLS for this long, such as 365d (Strict-Transport-Security)")
	boolean(&f.subdomains, "hsts-subdomains", "--hsts is for all names below this one too")
	value(&f.redirect, "http-redirect", "redirect plain HTTP from this address, such as :80, to TLS;\nserves the "+
		"challenges of --tls-auto too")
	boolean(&f.http3, "http3", "serve HTTP/3 too, on the UDP ports of the addresses")
}

// seen returns those of these flags that were given.
func (f *tlsFlags) seen(given func(flag string) bool) (all []string) {
	for _, name := range f.names {
		if given(name) {
			all = append(all, "--"+name)
		}
	}
	return all
}

// check checks the flags together.
func (f *tlsFlags) check(given func(flag string) bool) error {
	sources := 0
	for _, is := range []bool{given("tls-cert") || given("tls-key"), f.self, len(f.auto.all) > 0} {
		if is {
			sources++
		}
	}
	switch {
	case given("tls-cert") != given("tls-key"):
		return errors.New("--tls-cert and --tls-key go together")
	case given("tls-cert") && (f.cert == "" || f.key == ""):
		return errors.New("--tls-cert and --tls-key want the names of files")
	case sources > 1:
		return errors.New("--tls-cert, --tls-self and --tls-auto contradict each other; want one, or a configuration " +
			"file for several sites")
	case f.staging && f.ca.text != "":
		return errors.New("--tls-staging and --tls-ca contradict each other; leave one out")
	case given("tls-storage") && f.storage == "":
		return errors.New("--tls-storage wants the name of a folder")
	case given("client-ca") && f.clientCA == "":
		return errors.New("--client-ca wants the name of a file")
	case f.subdomains && f.hsts.text == "":
		return errors.New("--hsts-subdomains requires --hsts")
	}
	for _, name := range []string{"tls-email", "tls-ca", "tls-staging"} {
		if given(name) && len(f.auto.all) == 0 {
			return fmt.Errorf("--%s requires --tls-auto", name)
		}
	}
	if given("tls-storage") && !f.self && len(f.auto.all) == 0 {
		return errors.New("--tls-storage requires --tls-auto or --tls-self")
	}
	for _, name := range []string{"client-ca", "tls-min", "hsts", "http-redirect", "http3"} {
		if given(name) && sources == 0 {
			return fmt.Errorf("--%s requires --tls-cert, --tls-self or --tls-auto", name)
		}
	}
	return nil
}

// config returns what a configuration file would have for a single site.
func (f *tlsFlags) config() *config.Config {
	hsts, _ := config.ParseHSTS(f.hsts.text) // it has been checked
	site := config.Site{Hosts: []vhost.Pattern{"*"}, TLS: config.TLS{
		Cert: absolute(f.cert), Key: absolute(f.key), Self: f.self, Auto: len(f.auto.all) > 0,
		ClientCA: absolute(f.clientCA),
		Min:      f.min.text, HSTS: hsts, HSTSSubdomains: f.subdomains,
	}}
	if site.TLS.Auto {
		site.Hosts = nil
		for _, name := range f.auto.all {
			p, err := vhost.Parse(name)
			if err != nil {
				panic(err) // it has been checked
			}
			site.Hosts = append(site.Hosts, p)
		}
	}
	return &config.Config{HTTPRedirect: f.redirect.text, HTTP3: f.http3, Sites: []config.Site{site},
		ACME: config.ACME{Storage: absolute(f.storage), Email: f.email.text, CA: f.ca.text, Staging: f.staging}}
}

// checked is a flag whose value a function checks.
type checked struct {
	text, kind string
	check      func(string) error
}

func (f *checked) String() string { return f.text }

func (f *checked) Type() string { return f.kind }

func (f *checked) Set(s string) error {
	if err := f.check(s); err != nil {
		return err
	}
	if s == "" {
		return errors.New("the value is empty")
	}
	f.text = s
	return nil
}

// checkedList is a checked that may be repeated.
type checkedList struct {
	all   []string
	kind  string
	check func(string) error
}

func (f *checkedList) String() string { return strings.Join(f.all, ",") }

func (f *checkedList) Type() string { return f.kind }

func (f *checkedList) Set(s string) error {
	if err := f.check(s); err != nil {
		return err
	}
	f.all = append(f.all, s)
	return nil
}

// hstsValue is the field of HSTS, "" for none (RFC 6797 section 6.1).
func hstsValue(o config.TLS) string {
	if o.HSTS == 0 {
		return ""
	}
	v := fmt.Sprintf("max-age=%d", max(o.HSTS, 0)/time.Second)
	if o.HSTSSubdomains {
		v += "; includeSubDomains"
	}
	return v
}
