package top

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/chert-http/chert/internal/interval"
	"golang.org/x/term"
)

// Options are those of the command.
type Options struct {
	Every time.Duration
	Once  bool // one block of text
}

// Run displays a server until ctx ends or the user quits: on a terminal if in and out
// are one, otherwise as a block of text for each interval.
func Run(ctx context.Context, c *Client, o Options, in, out any) error {
	stdin, _ := in.(*os.File)
	stdout, _ := out.(*os.File)
	first, err := c.Sample(ctx)
	if err != nil {
		return quiet(ctx, err)
	}
	if !o.Once && stdin != nil && stdout != nil && fullScreen && term.IsTerminal(int(stdin.Fd())) &&
		term.IsTerminal(int(stdout.Fd())) {
		return newScreen(c, o, stdin, stdout).run(ctx, first)
	}
	return blocks(ctx, c, o, first, out.(io.Writer))
}

// quiet returns nil for an error that the end of ctx has caused.
func quiet(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// blocks prints a block for each interval.
func blocks(ctx context.Context, c *Client, o Options, before *interval.Sample, out io.Writer) error {
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	old, _ := c.Upstreams(ctx) // an older server has none
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := c.Sample(ctx)
		if err != nil {
			return quiet(ctx, err)
		}
		show := content{name: c.Name, report: interval.Between(before, now), order: orders[0], old: old}
		show.now, _ = c.Upstreams(ctx)
		before, old = now, show.now
		text := show.block()
		if n > 0 {
			text = "\n" + text
		}
		if _, err := io.WriteString(out, text); err != nil || o.Once {
			return err
		}
	}
}

// screen is a terminal. It belongs to the goroutine that calls run.
type screen struct {
	client  *Client
	options Options
	in, out *os.File
	show    content
	before  *interval.Sample
	state   string // instead of the keys
	paused  bool
	color   bool
}

func newScreen(c *Client, o Options, in, out *os.File) *screen {
	return &screen{client: c, options: o, in: in, out: out, color: os.Getenv("NO_COLOR") == "" &&
		os.Getenv("TERM") != "dumb",
		show: content{name: c.Name, order: orders[0]}}
}

// The sequences that begin and end the use of a terminal: another page, without a
// cursor and without wrapping.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// got is what a fetch has brought.
type got struct {
	sample *interval.Sample
	show   content // what the view needs beside it
	err    error
}

func (s *screen) run(ctx context.Context, first *interval.Sample) error {
	old, err := term.MakeRaw(int(s.in.Fd()))
	if err != nil {
		return fmt.Errorf("cannot use the terminal: %w", err)
	}
	io.WriteString(s.out, enterScreen)
	defer func() {
		io.WriteString(s.out, leaveScreen)
		term.Restore(int(s.in.Fd()), old)
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keys := make(chan byte)
	go readKeys(ctx, s.in, keys)
	resized, release := resizes()
	defer release()
	fetched := make(chan got, 1)
	fetching := false
	fetch := func() {
		if !fetching {
			fetching = true
			go func(v view) { fetched <- s.fetch(ctx, v) }(s.show.view)
		}
	}
	tick := time.NewTicker(s.options.Every)
	defer tick.Stop()
	s.before, s.show.report = first, interval.Average(first)
	s.draw()
	for {
		select {
		case <-ctx.Done():
			return nil
		case k, ok := <-keys:
			if !ok || !s.key(k) {
				return nil
			}
		case <-resized:
		case <-tick.C:
			fetch()
			continue
		case g := <-fetched:
			fetching = false
			s.take(g)
		}
		s.draw()
	}
}

// fetch reads what the view needs. It runs on its own goroutine, so that keys work
// while a server does not answer.
func (s *screen) fetch(ctx context.Context, v view) (g got) {
	if g.sample, g.err = s.client.Sample(ctx); g.err != nil {
		return g
	}
	g.show.asked = v
	switch v {
	case viewRequests:
		g.show.requests, g.err = s.client.Requests(ctx, maxListed)
	case viewConnections:
		g.show.conns, g.show.at, g.err = s.client.Connections(ctx, maxListed)
	case viewUpstreams:
		g.show.now, g.err = s.client.Upstreams(ctx)
	case viewSites:
		g.show.setup, g.err = s.client.Setup(ctx)
		g.show.at = g.sample.At
	}
	return g
}

const maxListed = 100 // requests or connections

func (s *screen) take(g got) {
	if g.err != nil {
		s.state = Clean(g.err.Error()) + "; trying again, q quits"
		return
	}
	s.state = ""
	report := interval.Between(s.before, g.sample)
	s.before = g.sample
	if s.paused {
		s.state = "paused; space goes on, q quits"
		if s.show.asked == s.show.view || g.show.asked != s.show.view {
			return
		}
		report = s.show.report // a view that was not there yet is filled
	}
	s.show.report = report
	if !g.show.now.At.IsZero() {
		s.show.old, s.show.now = s.show.now, g.show.now
	}
	s.show.requests, s.show.conns, s.show.setup, s.show.at = g.show.requests, g.show.conns, g.show.setup, g.show.at
	s.show.asked = g.show.asked
}

// key does what a key means, and returns false to quit.
func (s *screen) key(k byte) bool {
	switch k {
	case 'q', 'Q', 3, 4: // Ctrl-C, Ctrl-D
		return false
	case ' ', 'p':
		s.paused = !s.paused
		s.state = ""
		if s.paused {
			s.state = "paused; space goes on, q quits"
		}
	case '\t', 'v':
		s.show.view = (s.show.view + 1) % views
	case 'c':
		s.show.view = viewConnections
	case 'u':
		s.show.view = viewUpstreams
	case 's':
		s.show.view = viewSites
	}
	for _, o := range orders {
		if o.key == k {
			s.show.order, s.show.view = o, viewRoutes
		}
	}
	return true
}

var sequences = map[style]string{bold: "\x1b[1m", head: "\x1b[7m", warn: "\x1b[31m", dim: "\x1b[2m"}

// draw writes everything at once: what is there is overwritten, without flicker.
func (s *screen) draw() {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width < 1 || height < 1 {
		width, height = 80, 24
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, l := range s.show.screen(width, height, s.state) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		seq := sequences[l.style]
		if !s.color && l.style != head {
			seq = ""
		}
		b.WriteString(seq + l.text)
		if seq != "" {
			b.WriteString("\x1b[0m")
		}
		b.WriteString("\x1b[K")
	}
	b.WriteString("\x1b[J")
	io.WriteString(s.out, b.String())
}

// readKeys sends the keys that are single bytes. Others send sequences that begin with
// Escape, in one piece, and mean nothing here.
func readKeys(ctx context.Context, in io.Reader, keys chan<- byte) {
	defer close(keys)
	buf := make([]byte, 32)
	for {
		n, err := in.Read(buf)
		if err != nil {
			return
		}
		if buf[0] == 0x1b {
			continue
		}
		for _, k := range buf[:n] {
			select {
			case keys <- k:
			case <-ctx.Done():
				return
			}
		}
	}
}
