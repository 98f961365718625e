package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/spf13/cobra"
)

// oneLine checks that run fails: nothing on stdout, and on stderr exactly this line.
func oneLine(t *testing.T, wantCode int, want string, args ...string) {
	t.Helper()
	code, stdout, stderr := inProcess(t, args...)
	if code != wantCode || stderr != want+"\n" {
		t.Errorf("chert %q:\ngot  %d %s\nwant %d %s", args, code, stderr, wantCode, want)
	}
	if stdout != "" {
		t.Errorf("chert %q: stdout %q", args, stdout)
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	const (
		seeChert = `; see "chert --help"`
		seeServe = `; see "chert serve --help"`
		badListn = `chert: invalid argument %ARG% for "-l, --listen" flag: `
		wantForm = "want host:port, :port, a port, unix:/path or fd:NAME"
		wantSock = "want unix:/path?mode=0660&group=www-data; either may be left out"
		wantPort = "want a port from 0 to 65535 (0 takes a free one)"
	)
	listen := func(arg, why string) (args []string, want string) {
		return []string{"serve", "--listen", arg}, strings.ReplaceAll(badListn, "%ARG%", `"`+arg+`"`) + why + seeServe
	}
	for arg, why := range map[string]string{
		"65536":                      wantForm,
		"localhost":                  wantForm,
		"":                           wantForm,
		"http://x/":                  wantForm,
		"::1:8080":                   wantForm, // IPv6 needs brackets
		"x:":                         wantPort,
		":http":                      wantPort,
		":65536":                     wantPort,
		":-1":                        wantPort,
		"unix:":                      "want a path after unix:, as in unix:/run/chert.sock",
		"unix:?mode=1":               "want a path after unix:, as in unix:/run/chert.sock",
		"unix:s?":                    wantSock,
		"unix:s?a=b":                 wantSock,
		"unix:s?%":                   wantSock,
		"unix:s?mode":                "want a mode such as 0660, in octal",
		"unix:s?mode=rw":             "want a mode such as 0660, in octal",
		"unix:s?mode=8":              "want a mode such as 0660, in octal",
		"unix:s?mode=0":              "want a mode such as 0660, in octal",
		"unix:s?mode=4755":           "want a mode such as 0660, in octal",
		"unix:s?group=":              wantSock,
		"unix:s?mode=0660&mode=0600": "mode is given twice",
		"unix:@hidden":               "want a path after unix:; abstract sockets are not supported",
	} {
		args, want := listen(arg, why)
		oneLine(t, exitUsage, want, args...)
	}
	tests := []struct {
		args []string
		want string
	}{
		{nil, `chert: no command given; to serve a folder: "chert serve DIR"` + seeChert},
		{[]string{"sevre"}, `chert: unknown command "sevre"; perhaps "serve"` + seeChert},
		{[]string{"serv"}, `chert: unknown command "serv"; perhaps "serve"` + seeChert}, // not "cert"
		{[]string{"ser"}, `chert: unknown command "ser"; perhaps "serve"` + seeChert},
		{[]string{"hlp"}, `chert: unknown command "hlp"; perhaps "help"` + seeChert}, // not "top"
		{[]string{"dance"}, `chert: unknown command "dance"` + seeChert},
		{[]string{"stop"}, `chert: unknown command "stop": SIGTERM ends a server when its requests are done: kill PID` + seeChert},
		{[]string{"file-server", "--browse"}, `chert: unknown command "file-server": "chert serve DIR" serves a folder` + seeChert},
		{[]string{"reverse-proxy", "--to", ":9000"},
			`chert: unknown command "reverse-proxy": "chert proxy ADDR..." forwards requests` + seeChert},
		{[]string{"-t"}, `chert: unknown shorthand flag: 't' in -t: "chert check FILE" reports mistakes` + seeChert},
		{[]string{"-s", "reload"}, `chert: unknown shorthand flag: 's' in -s: servers take signals: kill PID stops one, ` +
			`and kill -HUP PID has it read its configuration again` + seeChert},
		{[]string{"-c", "chert.toml"},
			`chert: unknown shorthand flag: 'c' in -c: "chert serve --config FILE" serves the sites of a file` + seeChert},
		{[]string{"-V"}, `chert: unknown shorthand flag: 'V' in -V: use -v, or --version` + seeChert},
		{[]string{"serve", "--lisen", "8080"}, `chert: unknown flag: --lisen: perhaps --listen` + seeServe},
		{[]string{"serve", "--tls_cert", "x"}, `chert: unknown flag: --tls_cert: perhaps --tls-cert` + seeServe},
		{[]string{"serve", "--balance", "least"}, `chert: unknown flag: --balance: it is a flag of "chert proxy"` + seeServe},
		{[]string{"proxy", "--to", "9000"},
			`chert: unknown flag: --to: the addresses have no flag, as in "chert proxy ADDR..."; see "chert proxy --help"`},
		{[]string{"proxy", "9000", "--spa"}, `chert: unknown flag: --spa: it is a flag of "chert serve"; see "chert proxy --help"`},
		{[]string{"proxy", "9000", "--host"}, `chert: flag needs an argument: --host; see "chert proxy --help"`},
		{[]string{"--nope"}, `chert: unknown flag: --nope` + seeChert},
		{[]string{"serve", "--nope"}, `chert: unknown flag: --nope` + seeServe},
		{[]string{"serve", "a", "b"}, `chert: one folder at most, not 2; a name with spaces needs quotes` + seeServe},
		{[]string{"serve", "a", "--spa", "app.html"},
			`chert: one folder at most, not 2; the file of --spa is given as --spa=FILE` + seeServe},
		{[]string{"serve", "-l", "127.0.0.1:8080", "-l", "unix:s", "-l", "127.0.0.1:8080"},
			`chert: invalid argument "127.0.0.1:8080" for "-l, --listen" flag: it is given already` + seeServe},
		{[]string{"serve", "-l", "unix:s", "-l", "unix:s"},
			`chert: invalid argument "unix:s" for "-l, --listen" flag: it is given already` + seeServe},
		{[]string{"serve", "--log", "xml"},
			`chert: invalid argument "xml" for "--log" flag: want off, common, combined, vhost, text or json` + seeServe},
		{[]string{"serve", "--log", "access.log"}, `chert: invalid argument "access.log" for "--log" flag: want off, common, combined, ` +
			`vhost, text or json, not a file; in a configuration log = { file = "access.log" } has one` + seeServe},
		{[]string{"serve", "--quiet", "--log", "text"},
			`chert: --quiet and --log text contradict each other; leave one out` + seeServe},
		{[]string{"serve", "--shutdown-timeout", "-1s"},
			`chert: --shutdown-timeout -1s is negative; 0 does not wait` + seeServe},
		{[]string{"serve", "--shutdown-timeout", "5"},
			`chert: invalid argument "5" for "--shutdown-timeout" flag: wants a time such as 5s, 100ms or 1m30s` + seeServe},
		{[]string{"serve", "-l", "unix:s", "-l", "unix:s?mode=0660"},
			`chert: invalid argument "unix:s?mode=0660" for "-l, --listen" flag: it is given already` + seeServe},
		{[]string{"serve", "-l", "8080", "-l", "127.0.0.1:8080"},
			`chert: invalid argument "127.0.0.1:8080" for "-l, --listen" flag: it is given already` + seeServe},
		{[]string{"serve", "-l", ":8080", "-l", "127.0.0.1:8080"},
			`chert: invalid argument "127.0.0.1:8080" for "-l, --listen" flag: :8080 includes it already, as every address of this machine` + seeServe},
		{[]string{"serve", "-l", "[::1]:80", "-l", "0.0.0.0:80"},
			`chert: invalid argument "0.0.0.0:80" for "-l, --listen" flag: it is every address of this machine, and [::1]:80 is given already` + seeServe},
		{[]string{"serve", "--open=maybe"},
			`chert: invalid argument "maybe" for "--open" flag: wants no value, or true or false` + seeServe},
		{[]string{"serve", "--tls"}, `chert: unknown flag: --tls: chert serve has --tls-cert with --tls-key, --tls-self and --tls-auto; docs/tls.md describes them` + seeServe},
		{[]string{"demo", "--cert", "x"}, `chert: unknown flag: --cert: chert serve has --tls-cert with --tls-key, --tls-self and --tls-auto; docs/tls.md describes them; see "chert demo --help"`},
		{[]string{"serve", "--certificate", "x"}, `chert: unknown flag: --certificate: chert serve has --tls-cert with --tls-key, --tls-self and --tls-auto; docs/tls.md describes them` + seeServe},
		{[]string{"serve", "--port", "8080"}, `chert: unknown flag: --port: use --listen :8080, or --listen 8080 for this machine only` + seeServe},
		{[]string{"serve", "--Proxy", "http://x"}, `chert: unknown flag: --Proxy: "chert proxy ADDR" forwards requests; the sites of --config have proxy` + seeServe},
		{[]string{"serve", "--browse"}, `chert: unknown flag: --browse: folders without an index are listed; --no-listing turns that off` + seeServe},
		{[]string{"serve", "-p", "8080"}, `chert: unknown shorthand flag: 'p' in -p: use --listen :8080, or --listen 8080 for this machine only` + seeServe},
		{[]string{"serve", "-listen", "8080"}, `chert: unknown flag: -listen: it has two dashes: --listen` + seeServe},
		{[]string{"serve", "-listen=8080"}, `chert: unknown flag: -listen: it has two dashes: --listen` + seeServe},
		{[]string{"serve", "-tls-self"}, `chert: unknown flag: -tls-self: it has two dashes: --tls-self` + seeServe},
		{[]string{"serve", "-config", "chert.toml"}, `chert: unknown flag: -config: it has two dashes: --config` + seeServe},
		{[]string{"serve", "-lx"}, `chert: invalid argument "x" for "-l, --listen" flag: want host:port, :port, a port, unix:/path or fd:NAME` + seeServe},
		{[]string{"version", "x"}, `chert: version takes no arguments; see "chert version --help"`},
		{[]string{"help", "srve"}, `chert: unknown command "srve"; perhaps "serve"` + seeChert},
		{[]string{"help", "nosuch"}, `chert: unknown command "nosuch"` + seeChert},
		{[]string{"completion"},
			`chert: no shell given; want bash, zsh, fish or powershell; see "chert completion --help"`},
		{[]string{"completion", "csh"},
			`chert: unknown command "csh" for "chert completion"; see "chert completion --help"`},
	}
	for _, tt := range tests {
		oneLine(t, exitUsage, tt.want, tt.args...)
	}
}

// Errors of flags are chert's, not those of the packages that parse the value.
func TestFlagWords(t *testing.T) {
	t.Parallel()
	for _, cmd := range []*cobra.Command{newServeCmd(), newDemoCmd()} {
		for _, name := range flagNames(cmd) {
			_, _, stderr := inProcess(t, cmd.Name(), "--"+name+"=\x00", "one", "folder too many")
			for _, foreign := range []string{"strconv", "time:", "invalid syntax", "ParseAddr", "unknown unit"} {
				if strings.Contains(stderr, foreign) {
					t.Errorf("%s --%s: %s", cmd.Name(), name, stderr)
				}
			}
		}
	}
}

// There are hints only for flags that chert does not have, and they name only flags
// that it has.
func TestInstead(t *testing.T) {
	t.Parallel()
	var names []string
	for _, cmd := range []*cobra.Command{newServeCmd(), newDemoCmd()} {
		for _, name := range flagNames(cmd) {
			names = append(names, "--"+name)
			for _, name := range []string{name, cmd.Flags().Lookup(name).Shorthand} {
				if hint := config.InsteadOfFlag(name); hint != "" {
					t.Errorf("there is a flag %s: %s", name, hint)
				}
			}
		}
	}
	flag := regexp.MustCompile(`--[a-z0-9-]+`)
	// What a hint is about if it names no flag.
	other := regexp.MustCompile(`\b(no|not|cannot|never|GOMAXPROCS|SIGHUP|docs/[a-z]+\.md|chert serve DIR)\b`)
	for word, hint := range config.Instead {
		named := flag.FindAllString(hint.Flag, -1)
		for _, name := range named {
			if !slices.Contains(names, name) {
				t.Errorf("%s: there is no flag %s: %s", word, name, hint.Flag)
			}
		}
		if hint.Flag != "" && named == nil && !other.MatchString(hint.Flag) {
			t.Errorf("%s: it neither names what there is nor says that there is nothing: %s", word, hint.Flag)
		}
	}
}

func TestFolderErrors(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"file": "x"})
	missing, file := filepath.Join(dir, "missing"), filepath.Join(dir, "file")
	oneLine(t, exitFailure, `chert: no such folder: "`+missing+`"; give one that exists, as in "chert serve DIR"`,
		"serve", missing)
	oneLine(t, exitFailure, `chert: no such folder: "8000"; for the port: --listen :8000`, "serve", "8000")
	oneLine(t, exitFailure, `chert: no such folder: "`+missing+`"; the file of --spa comes after an equals sign: --spa=FILE`,
		"serve", "--spa", missing)
	// As from a script's unset variable. It must not mean the current folder.
	oneLine(t, exitFailure, `chert: no such folder: ""; give one that exists, as in "chert serve DIR"`, "serve", "")
	oneLine(t, exitFailure,
		`chert: "`+file+`" is not a folder; give the folder that holds it, as in "chert serve DIR"`, "serve", file)
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().(*net.TCPAddr)
	oneLine(t, exitFailure, portTaken(addr), "serve", t.TempDir(), "--listen", addr.String())
}

func portTaken(addr *net.TCPAddr) string {
	next := net.TCPAddr{IP: addr.IP, Port: otherPort(addr.Port)}
	return "chert: " + addr.String() + " is already in use; stop the program that holds it or choose another port," +
		" such as --listen " + next.String()
}

// The server's sockets can share a port. A second chert must not make use of that, or each would get some clients.
func TestPortTakenByChert(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "--listen", "127.0.0.1:0")
	addr, err := net.ResolveTCPAddr("tcp", strings.TrimSuffix(strings.TrimPrefix(p.urls[0], "http://"), "/"))
	if err != nil {
		t.Fatal(err)
	}
	oneLine(t, exitFailure, portTaken(addr), "serve", t.TempDir(), "--listen", addr.String())
}

// What was opened before the failure is closed, and its socket file removed.
func TestBindAllOrNothing(t *testing.T) {
	t.Parallel()
	sock := filepath.Join(shortDir(t), "s")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := &service{srv: new(chert.Server)}
	_, _, err = s.bind([]endpoint{{network: "unix", address: sock}, {network: "tcp", address: l.Addr().String()}}, nil)
	if !isAddrInUseLine(err) {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Lstat(sock); !os.IsNotExist(err) {
		t.Errorf("the socket file is still there: %v", err)
	}
}

func isAddrInUseLine(err error) bool {
	return err != nil && strings.Contains(err.Error(), "is already in use")
}

func TestBadAddresses(t *testing.T) {
	t.Parallel()
	// 192.0.2.0/24 is set aside for documentation; no machine has it.
	oneLine(t, exitFailure, "chert: cannot listen on 192.0.2.1:8080, which is no address of this machine;"+
		" --listen :8080 takes all it has", "serve", t.TempDir(), "--listen", "192.0.2.1:8080")
}

func TestExplainTCP(t *testing.T) {
	t.Parallel()
	tests := []struct {
		address string
		err     error
		want    string
	}{
		{":80", os.ErrPermission,
			"no permission to listen on :80; ports below 1024 need privileges, others do not: try --listen :8080"},
		{"[::1]:443", os.ErrPermission,
			"no permission to listen on [::1]:443; ports below 1024 need privileges, others do not: try --listen [::1]:8080"},
		{":8080", os.ErrPermission, "no permission to listen on :8080; choose another port with --listen"},
		{"nowhere.invalid:80", &net.DNSError{Err: "no such host", Name: "nowhere.invalid"},
			"cannot listen on nowhere.invalid:80: no such host; give an address of this machine, or --listen :80 for all it has"},
		{":80", errors.New("the moon is full"), "cannot listen on :80: the moon is full"},
	}
	for _, tt := range tests {
		if got := explainTCP(endpoint{network: "tcp", address: tt.address}, tt.err).Error(); got != tt.want {
			t.Errorf("%s, %v:\ngot  %s\nwant %s", tt.address, tt.err, got, tt.want)
		}
	}
}
