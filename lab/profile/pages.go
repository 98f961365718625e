package profile

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/lab/files"
	"github.com/chert-http/chert/lab/link"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/lossy"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

// pages measures how long pages take over a path that delays and loses packets.
type pages struct {
	Pace
	seats    Seats
	where    link.Options
	path     lossy.Path // but for its losses, which each table has its own of
	versions []int      // of HTTP
	folder   string
	page     load.Page
	log      io.Writer
}

// runH3Pages takes a table for each share of packets that are lost.
func runH3Pages(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: rival.Files | rival.H2, server: "chert3"}
	m := pages{log: log}
	paths, count, err := m.flags(&c, args)
	if err != nil {
		return err
	}
	if m.seats, err = c.seats(-1); err != nil {
		return err
	}
	// Before anything is built, as not everybody may have one.
	if err := m.check(ctx, paths[0]); err != nil {
		return err
	}
	specs, dir, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all := pageOf(count)
	m.folder, err = files.Write("", all)
	defer os.RemoveAll(m.folder)
	if err != nil {
		return err
	}
	if m.page, err = contents(all); err != nil {
		return err
	}
	var file report.File
	for _, p := range paths {
		table, err := m.table(ctx, specs, p)
		if err != nil {
			return err
		}
		table.Title = fmt.Sprintf("h3pages, %d files, together %d KB: %s", count, files.Total(all)/1000, table.Title)
		table.Text(out)
		fmt.Fprintln(out)
		file.Pages = append(file.Pages, table)
	}
	return c.finish(file, nil, out)
}

// flags reads the command line: the paths to measure, and how many files a page has.
func (m *pages) flags(c *common, args []string) (paths []lossy.Path, count int, err error) {
	f := flag.NewFlagSet("h3pages", flag.ContinueOnError)
	c.register(f, "quicgo")
	f.IntVar(&m.Rounds, "rounds", 30, "how many pages each server sends over new connections, and over the same again")
	f.IntVar(&count, "files", 30, "how many a page has")
	versions := f.String("http", "3,2,1", "versions of HTTP; servers without HTTP/3 are left out of that")
	losses := f.String("loss", "0,1", "percent of the packets of each direction that are lost; a table for each")
	rate := f.Float64("rate", 20, "Mbit/s through the bottleneck")
	f.DurationVar(&m.path.Delay, "delay", 25*time.Millisecond, "of each direction")
	f.IntVar(&m.path.Queue, "queue", 100, "packets that may wait for the bottleneck")
	f.Uint64Var(&m.path.Seed, "seed", 1, "decides which packets are lost")
	f.IntVar(&m.where.MTU, "mtu", 1500, "of the path")
	f.StringVar(&m.where.Congestion, "congestion", "cubic", "TCP's congestion `control`; HTTP/3 has its own")
	if err := parse(f, args); err != nil {
		return nil, 0, err
	}
	if m.versions, err = numbers(*versions); err != nil {
		return nil, 0, err
	}
	if slices.Max(m.versions) > 3 {
		return nil, 0, fmt.Errorf("--http %s: there are 1, 2 and 3", *versions)
	}
	if m.Rounds < 1 || count < 1 {
		return nil, 0, fmt.Errorf("%d rounds of a page of %d files: too little", m.Rounds, count)
	}
	m.path.Rate = int(*rate * 1e6)
	paths, err = m.paths(*losses)
	return paths, count, err
}

// paths reads the losses.
func (m *pages) paths(percents string) ([]lossy.Path, error) {
	var all []lossy.Path
	for field := range strings.SplitSeq(percents, ",") {
		percent, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
		if err != nil {
			return nil, fmt.Errorf("--loss %s: a list of percents", percents)
		}
		p := m.path
		p.Loss = percent / 100
		if err := p.Check(); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// check makes a path, which needs rights, and removes it.
func (m *pages) check(ctx context.Context, p lossy.Path) error {
	l, err := m.open(ctx, p)
	if err != nil {
		return err
	}
	return l.Close()
}

func (m *pages) open(ctx context.Context, p lossy.Path) (*link.Link, error) {
	where := m.where
	where.Path = &p
	return link.Open(ctx, where)
}

// The sizes of a page's files: each power of two between these is as likely as another.
const (
	leastPageFile = 1e3
	mostPageFile  = 60e3
)

// pageOf is a document and further files, whose sizes are always the same.
func pageOf(n int) []files.File {
	const document = 20e3
	all := []files.File{{Name: "/document.html", Size: document}}
	r := rand.New(rand.NewPCG(1, 1))
	for i, kinds := 1, []string{"css", "js", "png", "woff2", "jpg"}; i < n; i++ {
		size := leastPageFile * math.Pow(mostPageFile/leastPageFile, r.Float64())
		all = append(all, files.File{Name: fmt.Sprintf("/file%d.%s", i, kinds[i%len(kinds)]), Size: int64(size)})
	}
	return all
}

func contents(all []files.File) (load.Page, error) {
	var fetched []load.PageFile
	for _, f := range all {
		content, err := f.Content()
		if err != nil {
			return load.Page{}, err
		}
		fetched = append(fetched, load.PageFile{Path: f.Name, Content: content})
	}
	return load.Page{Document: fetched[0], Rest: fetched[1:]}, nil
}

// visited is a server over one version of HTTP.
type visited struct {
	*rival.Server
	version int
}

// table measures all servers over one path. What came is checked, so that there are no faults but errors.
func (m *pages) table(ctx context.Context, specs []rival.Spec, p lossy.Path) (t report.Pages, err error) {
	l, err := m.open(ctx, p)
	if err != nil {
		return t, err
	}
	defer func() {
		if failed := l.Close(); err == nil {
			err = failed
		}
	}()
	var all []visited
	for _, spec := range specs {
		room := rival.Room{Cores: m.seats.Server, Connections: 10, TLS: true, Files: m.folder, Link: l}
		s, err := rival.Start(ctx, spec, room)
		if err != nil {
			return t, err
		}
		defer s.Stop()
		for _, v := range m.versions {
			if v < 3 || s.Does.Has(rival.H3) {
				all = append(all, visited{s, v})
				t.Series = append(t.Series, report.PagesSeries{Server: s.Name, HTTP: v})
			}
		}
	}
	for _, v := range all { // the servers' first pages, which are not like others
		if _, _, err := m.visit(ctx, v, "warm-up"); err != nil {
			return t, err
		}
	}
	err = m.inTurn(len(all), func(i int, name string) error {
		first, again, err := m.visit(ctx, all[i], name)
		t.Series[i].New, t.Series[i].Warm = append(t.Series[i].New, first), append(t.Series[i].Warm, again)
		return err
	})
	where := m.where
	where.Path = &p
	t.Title = fmt.Sprintf("%s, %d rounds, servers on core %d", where.Describe(), m.Rounds, m.seats.Server[0])
	t.Packets = l.Counts().String()
	return t, err
}

// visit fetches the page over new connections, and again over the same.
func (m *pages) visit(ctx context.Context, v visited, name string) (first, again report.PageTime, err error) {
	b := load.OpenBrowser(v.TLS, v.version)
	defer b.Close()
	for _, to := range []*report.PageTime{&first, &again} {
		took, err := b.Fetch(ctx, m.page)
		if err != nil {
			return first, again, fmt.Errorf("%s, HTTP/%d: %w", v.Name, v.version, err)
		}
		*to = report.PageTime{Page: micros(took.Page) / 1e3, File: micros(took.File) / 1e3}
	}
	fmt.Fprintf(m.log, "%-12s %-24s HTTP/%d  %7.1f ms, again %7.1f ms\n", name, v.Name, v.version, first.Page, again.Page)
	return first, again, nil
}
