package profile

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

// common holds the flags that all profiles have.
type common struct {
	profile string
	needs   rival.Trade // what servers must do to take part
	server  string
	vs      string
	servers string // if not empty, the two above do not count
	against string
	tags    string
	json    string
	plot    string
	core    int
	cores   int
}

// everyone, as the list of rivals, is all of them that are installed and can serve the profile.
const everyone = "all"

// register is called with needs and, unless it is to be chert, server set.
func (c *common) register(f *flag.FlagSet, vs string) {
	c.profile = f.Name()
	if c.server == "" {
		c.server = "chert"
	}
	f.StringVar(&c.server, "server", c.server, "the server to compare with its rivals, one of "+strings.Join(rival.Names(), ", "))
	f.StringVar(&c.vs, "vs", vs, "its rivals, separated by commas; \""+everyone+"\" for all that are installed, empty for none")
	f.StringVar(&c.servers, "servers", "", "instead of --server and --vs: all that take part, separated by commas, the one to compare first")
	f.StringVar(&c.against, "against", "", "also measure chert as it was at this `revision`: a commit, branch or tag, or a folder with chert's source\n"+
		"as /... or ./..., from where the lab runs; several are separated by commas")
	f.StringVar(&c.tags, "against-tags", "", "also measure chert as it is when built with these `tags`, separated by commas")
	f.StringVar(&c.json, "json", "", "also write every round to this `file`")
	f.StringVar(&c.plot, "plot", "", "also draw each table into this `folder`, as SVG and PNG")
	f.IntVar(&c.cores, "cores", 1, "how many cores a server has")
	f.IntVar(&c.core, "server-core", -1, "the first core servers run on (-1: the first this process may use)")
}

// names lists the servers to run, the one under test first.
func (c *common) names(ctx context.Context, log io.Writer) []string {
	if c.servers != "" {
		return list(c.servers)
	}
	if c.vs != everyone {
		return list(c.server + "," + c.vs)
	}
	rivals, skipped := rival.Default(ctx, c.server, c.needs)
	for _, why := range skipped {
		fmt.Fprintln(log, why)
	}
	return append([]string{c.server}, rivals...)
}

// list reads names separated by commas; none is there twice.
func list(text string) []string {
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// open makes the servers ready to start. The caller removes dir.
func (c *common) open(ctx context.Context, log io.Writer) (specs []rival.Spec, dir string, err error) {
	dir, err = os.MkdirTemp("", "chert-lab-")
	if err != nil {
		return nil, "", err
	}
	if specs, err = c.build(ctx, dir, log); err != nil {
		os.RemoveAll(dir)
		return nil, "", err
	}
	return specs, dir, nil
}

// build makes the servers in dir.
func (c *common) build(ctx context.Context, dir string, log io.Writer) ([]rival.Spec, error) {
	names := c.names(ctx, log)
	if len(names) == 0 {
		return nil, errors.New("no servers to measure")
	}
	// First what a mistake is found in at once: building takes its time.
	var found []rival.Spec
	for _, name := range names {
		spec, err := rival.Find(name)
		if err != nil {
			return nil, err
		}
		if !spec.Does.Has(c.needs) {
			return nil, fmt.Errorf("%s does not %s that %s needs", spec.Name, lacking[c.needs], c.profile)
		}
		found = append(found, spec)
	}
	revisions, err := c.revisions(ctx, dir)
	if err != nil {
		return nil, err
	}
	specs, err := rival.Ready(ctx, dir, found)
	if err != nil {
		return nil, err
	}
	return withRevisions(ctx, dir, specs, revisions, log)
}

// lacking says what a server does not do.
var lacking = map[rival.Trade]string{
	rival.Answers: "give the answers",
	rival.Code:    "run the handlers",
	rival.Files:   "serve the files",
	rival.Streams: "stream the bodies",
	rival.Events:  "stream the events",
	rival.Sockets: "open the WebSockets",
	rival.Sites:   "serve the site",

	rival.Events | rival.H3:  "stream the events over HTTP/3",
	rival.Answers | rival.H2: "give the answers over HTTP/2",
	rival.Code | rival.H2:    "run the handlers over HTTP/2",
	rival.Files | rival.H2:   "serve the files over HTTP/2",
}

// finish writes the JSON file and draws the plots, if they are wanted, and turns faults into an error.
func (c *common) finish(f report.File, faults []string, out io.Writer) error {
	f.Profile = c.profile
	f.Errors = append([]string{}, faults...)
	for _, fault := range faults {
		fmt.Fprintln(out, "ERRORS:", fault)
	}
	if c.json != "" {
		if err := f.Write(c.json); err != nil {
			return err
		}
	}
	var err error
	if c.plot != "" {
		err = plot(f, c.plot)
	}
	if len(faults) > 0 {
		err = errors.Join(ErrFaulty, err)
	}
	return err
}
