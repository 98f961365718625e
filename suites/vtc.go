package main

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// This file turns a test of HAProxy's, which has HAProxy between clients and servers of
// varnishtest, into one that has chert there. What the test does with HAProxy as a server, or to
// look at it, stays or is left out.

// vtcCase is such a test.
type vtcCase struct {
	file string // below reg-tests
	// why it is not run.
	why string
	// as are the keys of [upstream.app], by the address that is bound; "" is for all.
	as map[string]string
	// site are keys of [[site]].
	site string
	// keep are sections that stay HAProxy's, and before those that HAProxy answers itself, by
	// the address that is bound: chert forwards to it.
	keep, before []string
	// each client is run in a test of its own. single uses one loop, which has all connections
	// that are kept.
	each, single bool
	// goroutines forwards no request on loops: those that are not have connections of their own, of
	// which varnishtest's servers take one at a time.
	goroutines bool
	// drop are clients that are left out, and why.
	drop map[string]string
	// edits are made first. Each must match.
	edits []vtcEdit
}

type vtcEdit struct{ old, new, why string }

// vtcFront is a process of chert.
type vtcFront struct {
	name, port string
	h2         bool     // clients speak HTTP/2
	servers    []string // addresses
	keys       string   // of the upstream
	h2Servers  bool
}

var (
	vtcBlock    = regexp.MustCompile(`(?ms)^haproxy (\S+) [^\n]*-conf \{\n(.*?)^\} -start\n`)
	vtcServer   = regexp.MustCompile(`^server\s+(\S+)\s+"?(\$\{[^}]*\}:\$\{[^}]*\})"?(.*)$`)
	vtcBind     = regexp.MustCompile(`^bind "fd@\$\{(\w+)\}"(.*)$`)
	vtcClient   = regexp.MustCompile(`(?m)^client\s+(\S+)\s`)
	vtcCLI      = regexp.MustCompile(`(?ms)^haproxy \S+ -cli \{.*?^\}[^\n]*\n`)
	vtcSettings = regexp.MustCompile(`(txsettings\n\s*rxsettings\n)(\s*)(txsettings -ack)`)
	vtcLog      = regexp.MustCompile(`(?ms)^syslog (\S+) [^\n{]*\{\n.*?^\} -start\n`)
)

// vtcSection is a part of HAProxy's configuration.
type vtcSection struct {
	kind, name string
	lines      []string
}

func vtcSections(conf string) (list []vtcSection) {
	for line := range strings.Lines(conf) {
		words := strings.Fields(line)
		if len(words) > 0 && slices.Contains([]string{"global", "defaults", "listen", "frontend", "backend"}, words[0]) {
			list = append(list, vtcSection{kind: words[0], name: strings.Join(words[1:], " ")})
			continue
		}
		if len(list) > 0 {
			s := &list[len(list)-1]
			s.lines = append(s.lines, strings.TrimRight(line, "\n"))
		}
	}
	return list
}

func (s *vtcSection) text() string {
	return s.kind + " " + s.name + "\n" + strings.Join(s.lines, "\n") + "\n"
}

// servers are those of a section, or of the backend that it uses.
func (s *vtcSection) servers(all []vtcSection, f *vtcFront) {
	for _, line := range s.lines {
		line = strings.TrimSpace(line)
		if m := vtcServer.FindStringSubmatch(line); m != nil {
			f.servers = append(f.servers, m[2])
			f.h2Servers = f.h2Servers || strings.Contains(m[3], "proto h2")
		}
		words := strings.Fields(line)
		if len(words) == 2 && (words[0] == "use_backend" || words[0] == "default_backend") {
			for _, b := range all {
				if b.kind == "backend" && b.name == words[1] {
					b.servers(nil, f)
				}
			}
		}
	}
}

// translate returns the test with chert in it. start returns what varnishtest has to do to
// start a front.
func (c *vtcCase) translate(text string, start func(*vtcFront) (string, error)) (string, error) {
	for _, e := range c.edits {
		if !strings.Contains(text, e.old) {
			return "", fmt.Errorf("%s does not have:\n%s", c.file, e.old)
		}
		text = strings.ReplaceAll(text, e.old, e.new)
	}
	for name := range c.drop {
		block := regexp.MustCompile(`(?ms)^client\s+` + regexp.QuoteMeta(name) + `\s.*?^\}[^\n]*\n`)
		if !block.MatchString(text) {
			return "", fmt.Errorf("%s has no client %s", c.file, name)
		}
		text = block.ReplaceAllLiteralString(text, "")
	}
	// Whether the HAProxy of this system has a feature of a later one does not matter.
	text = regexp.MustCompile(`(?m)^\s*feature cmd .*\n`).ReplaceAllLiteralString(text, "")
	text = vtcCLI.ReplaceAllLiteralString(text, "")
	for _, m := range vtcLog.FindAllStringSubmatch(text, -1) {
		text = regexp.MustCompile(`(?m)^syslog `+regexp.QuoteMeta(m[1])+` -wait\n`).ReplaceAllLiteralString(text, "")
	}
	text = vtcLog.ReplaceAllLiteralString(text, "")
	// After its SETTINGS chert sends a WINDOW_UPDATE, as a client too.
	text = vtcSettings.ReplaceAllString(text, "$1${2}rxwinup\n$2$3")
	var fail error
	macros := []string{}
	text = vtcBlock.ReplaceAllStringFunc(text, func(block string) string {
		m := vtcBlock.FindStringSubmatch(block)
		sections := vtcSections(m[2])
		var rest, starts strings.Builder
		bound := false
		for i := range sections {
			s := &sections[i]
			fronts := c.fronts(s, sections)
			if slices.Contains(c.keep, s.name) {
				fronts = nil
			}
			conf := s.text()
			for _, name := range c.before {
				behind := name + "_o"
				if strings.Contains(conf, "fd@${"+name+"}") {
					conf = strings.ReplaceAll(conf, "fd@${"+name+"}", "fd@${"+behind+"}")
					fronts = append(fronts, &vtcFront{name: name, keys: c.as[""] + c.as[name],
						servers: []string{"${" + m[1] + "_" + behind + "_addr}:${" + m[1] + "_" + behind + "_port}"}})
				}
			}
			if len(fronts) == 0 || conf != s.text() {
				rest.WriteString(conf)
				bound = bound || s.kind == "listen" || s.kind == "frontend"
			}
			for _, f := range fronts {
				commands, err := start(f)
				if err != nil {
					fail = err
					return ""
				}
				starts.WriteString(commands)
				for _, macro := range [][2]string{{"_sock", "127.0.0.1:" + f.port}, {"_addr", "127.0.0.1"}, {"_port", f.port}} {
					macros = append(macros, "${"+m[1]+"_"+f.name+macro[0]+"}", macro[1])
				}
			}
		}
		if !bound {
			return starts.String()
		}
		return "haproxy " + m[1] + " -conf {\n" + rest.String() + "} -start\n" + starts.String()
	})
	return strings.NewReplacer(macros...).Replace(text), fail
}

// fronts returns the processes that stand for a section.
func (c *vtcCase) fronts(s *vtcSection, all []vtcSection) (list []*vtcFront) {
	for _, line := range s.lines {
		m := vtcBind.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		f := &vtcFront{name: m[1], h2: strings.Contains(m[2], "proto h2"), keys: c.as[""] + c.as[m[1]]}
		s.servers(all, f)
		if len(f.servers) > 0 {
			list = append(list, f)
		}
	}
	return list
}

// clients are the clients of a test, in order.
func vtcClients(text string) (list []string) {
	for _, m := range vtcClient.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(list, m[1]) {
			list = append(list, m[1])
		}
	}
	return list
}

// freePort returns a port that nothing listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// command returns how varnishtest starts the front, and waits until it listens.
func (f *vtcFront) command(c *vtcCase, programs, engine string) string {
	name := "p_" + f.name
	ready := fmt.Sprintf("shell { i=0; until grep -q 'http://' ${tmpdir}/%s.log; do i=$((i+1)); [ $i -lt 1500 ] || exit 1; sleep 0.02; done }\n", name)
	if f.h2 {
		if c.goroutines {
			engine = "goroutines"
		}
		servers := strings.Join(f.servers, ",")
		return fmt.Sprintf("process %s \"exec %s/suites front %s %s %s %v >${tmpdir}/%s.log 2>&1\" -start\n", name, programs,
			"127.0.0.1:"+f.port, servers, engine, f.h2Servers, name) + ready
	}
	var toml strings.Builder
	fmt.Fprintf(&toml, "listen = \"127.0.0.1:%s\"\n[upstream.app]\nservers = [", f.port)
	for i, s := range f.servers {
		if i > 0 {
			toml.WriteString(", ")
		}
		fmt.Fprintf(&toml, "%q", s)
	}
	toml.WriteString("]\n" + f.keys)
	if f.h2Servers {
		toml.WriteString("protocol = \"h2\"\n")
	}
	if engine == "goroutines" {
		toml.WriteString("retry = [\"statuses\"]\n") // which loops leave to goroutines
	}
	toml.WriteString("[[site]]\nhosts = [\"*\"]\nproxy = \"app\"\n" + c.site)
	env := ""
	if c.single {
		env = "env GOMAXPROCS=1 "
	}
	return fmt.Sprintf("shell { cat >${tmpdir}/%s.toml <<'EOF'\n%sEOF\n}\n", name, toml.String()) +
		fmt.Sprintf("process %s \"exec %s%s/chert serve --config ${tmpdir}/%s.toml >${tmpdir}/%s.log 2>&1\" -start\n", name, env, programs, name, name) + ready
}
