package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// opening is how the story begins, and chapters is what leads over to each experiment.
const opening = `# Experiments

Five people have built a web server from scratch and published how fast it became. Each of their measurements is repeated
here, beside chert and the servers that people use: the same work, the published figures beside the measured ones, and a
verdict on each claim by a rule that is stated before anything is measured.

    go run -C lab . experiment all          all of it, under half an hour on two cores
    go run -C lab . experiment stages       one of them; lab/README.md says what must be installed

This page and the others are made by these commands from what they have measured. Absolute figures are of one machine:
what counts is the ratio of two servers that were measured in the same rounds. Do not edit the pages.

`

var chapters = map[string]string{
	"stages":     "One thread that accepts, reads, writes and closes is where everybody starts. It serves a few thousand requests a second, however many clients there are: the others wait. Three steps lead from there to the server that everybody ends with.",
	"keepalive":  "The largest step of all is no work on the server, but less work: not opening a connection for each request.",
	"pools":      "In a language with a garbage collector the next thing that everybody finds is memory that is made and thrown away for each request.",
	"workers":    "Then comes the question of who runs the handlers. A goroutine for each connection costs memory, a pool of workers costs waiting; chert lets the loop run handlers that have been quick, and moves others to goroutines.",
	"flint":      "How much is it all worth beside the rest of a server: TLS, a limiter, the router, the log?",
	"goroutines": "A connection that is open and silent should cost as little as possible. A goroutine for each is the price of the usual interface; a loop needs none.",
	"static":     "Files do not pass through the program at all. What is left are the system calls around sendfile, and each of them can be left out on its own.",
	"iouring":    "When nothing is left but system calls, the remaining idea is to make fewer of them.",
	"profile":    "Where, then, does the time of a request go today?",
	"scaling":    "And what does that say about machines that are not at hand?",
}

// Story writes the page that tells of all experiments in order, from their records in a folder. Experiments without a
// record are in it, as such.
func Story(dir string) error {
	var page strings.Builder
	page.WriteString(opening)
	var claims, details strings.Builder
	for _, e := range All() {
		rec, err := readRecord(filepath.Join(dir, e.Name+".json"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		fmt.Fprintf(&details, "## %s\n\n%s\n\n", e.Title, chapters[e.Name])
		if err != nil {
			fmt.Fprintf(&details, "Not measured yet: `go run -C lab . experiment %s`.\n\n", e.Name)
			for _, c := range e.Claims {
				row(&claims, "["+e.Name+"](#"+anchor(e.Title)+")", c.Text, string(NotMeasured))
			}
			continue
		}
		if rec.Short {
			details.WriteString("**The short form: the figures say nothing.**\n\n")
		}
		for _, f := range rec.Findings {
			row(&claims, "["+e.Name+"]("+e.Name+".md)", f.Claim, "**"+string(f.Verdict)+"**")
			fmt.Fprintf(&details, "- **%s**: %s Here: %s. %s\n", f.Verdict, sentence(f.Claim), f.Measured, f.Why)
		}
		details.WriteString("\n")
		if len(rec.Plots) > 0 {
			rec.Plots[0].markdown(&details)
		}
		fmt.Fprintf(&details, "More in [%s.md](%s.md).\n\n", e.Name, e.Name)
	}
	fmt.Fprintf(&page, "| experiment | claim | verdict |\n| --- | --- | --- |\n%s\n%s", claims.String(), details.String())
	page.WriteString("## What cannot be measured on one machine\n\n| whose | what | published | why not |\n| --- | --- | --- | --- |\n")
	for _, f := range published() {
		if f.Why != "" {
			row(&page, f.Server, f.What, f.Published, f.Why)
		}
	}
	return os.WriteFile(filepath.Join(dir, "README.md"), []byte(page.String()), 0o644)
}

// pages makes all pages again, from the records in a folder: after a change of their words, or of rules that hold for what
// was measured already. Plots stay.
func pages(dir string) error {
	if dir == "" {
		return errors.New("experiment pages --short wants --out")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, e := range All() {
		rec, err := readRecord(filepath.Join(dir, e.Name+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		rec.judge(e)
		if err := rec.write(dir); err != nil {
			return err
		}
	}
	return Story(dir)
}

func readRecord(path string) (Record, error) {
	var rec Record
	text, err := os.ReadFile(path)
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(text, &rec); err != nil {
		return rec, fmt.Errorf("%s: %w", path, err)
	}
	return rec, nil
}

// anchor is the fragment of a heading, as Markdown's readers make it.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return '-'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return -1
	}, strings.ToLower(title))
}

func sentence(s string) string { return strings.TrimSuffix(s, ".") + "." }
