package main

import (
	"fmt"
	"strconv"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/sys"
	"github.com/spf13/cobra"
)

// connFlags are the flags that limit the number of connections.
type connFlags struct{ all, perAddr boundFlag }

// boundFlag is a number whose default is derived from other values.
type boundFlag struct {
	n    int
	set  bool
	from int
}

func (f *boundFlag) String() string {
	if !f.set {
		return ""
	}
	return strconv.Itoa(f.n)
}

func (f *boundFlag) Type() string { return "number" }

func (f *boundFlag) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < f.from || n > config.MaxConns {
		return fmt.Errorf("want a number from %d to %d", f.from, config.MaxConns)
	}
	f.n, f.set = n, true
	return nil
}

func (f *connFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.all.from = 1
	flags.Var(&f.all, "max-conns", "maximum number of open connections; at the maximum, the one that has been idle\n"+
		"longest is closed for a new one. Default: derived from the limit of open files")
	flags.Var(&f.perAddr, "max-conns-per-addr", "maximum for one client address, or IPv6 /64; 0 for no limit.\n"+
		"Default: half of --max-conns, no limit with --trusted-proxy")
	for _, name := range []string{"max-conns", "max-conns-per-addr"} {
		mustComplete(cmd, name, cobra.NoFileCompletions)
	}
}

// connLimits are MaxConns and MaxConnsPerAddr of the server.
type connLimits struct{ all, perAddr int }

// over returns the limits of the command line, or else those of the file.
// Without either, no address may have more than half: a client that is alone on
// its address cannot take all connections, and a NAT, or a proxy that is not
// configured, is limited only when it would take more than half. Configured
// proxies send the requests of all clients, so there is no limit per address
// then.
func (f *connFlags) over(c *config.Config, proxies bool) connLimits {
	l := connLimits{all: loop.DefaultConns()}
	if c.MaxConns != nil {
		l.all = *c.MaxConns
	}
	if f.all.set {
		l.all = f.all.n
	}
	switch {
	case f.perAddr.set:
		l.perAddr = f.perAddr.n
	case c.MaxConnsPerAddr != nil:
		l.perAddr = *c.MaxConnsPerAddr
	case !proxies:
		l.perAddr = max(l.all/2, 1)
	}
	return l
}

// warning is what to say if there are fewer descriptors than MaxConns needs, and which limit
// that is; most is how many connections it allows.
func (l connLimits) warning(most int, files sys.FileLimits) string {
	switch {
	case l.all > files.Files()-64:
		return fmt.Sprintf("max_conns is %d, but the limit of open files allows fewer: %v", l.all, files)
	case l.all > most:
		return fmt.Sprintf("max_conns is %d; %d would leave descriptors for files and other connections: %v",
			l.all, most, files)
	}
	return ""
}

// ofRedirects returns the limits of plain HTTP beside TLS. Browsers leave it after
// a request.
func (l connLimits) ofRedirects() connLimits {
	r := connLimits{all: max(l.all/8, 1)}
	if l.perAddr > 0 { // 0 is no limit
		r.perAddr = max(l.perAddr/8, 1)
	}
	return r
}
