package profile

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/chart"
)

// Draw draws a profile's lines over connections from tables that earlier runs printed: file is a page of
// lab/record/measurements or saved output. It writes DIR/FILE-PROFILE.svg and .png.
func Draw(profile, file, dir string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	lines, err := recorded(profile, string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	lines.Title = fmt.Sprintf("%s, %s: median and quartiles", profile, name)
	return lines.Save(dir, name+"-"+profile)
}

// recorded reads the tables of a profile. Servers that are not in all of them are left out.
func recorded(profile, text string) (chart.Lines, error) {
	title := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(profile) + `, (\d+) .*connections: .*$`)
	lines := chart.Lines{XAxis: "connections", YAxis: cpuAxis}
	found := title.FindAllStringSubmatchIndex(text, -1)
	if len(found) < 2 {
		return lines, fmt.Errorf("%d tables of %s; lines need two at least", len(found), profile)
	}
	slices.SortFunc(found, func(a, b []int) int {
		return cmp.Compare(number(text[a[2]:a[3]]), number(text[b[2]:b[3]]))
	})
	for _, at := range found {
		rows, err := readTable(text[at[1]:])
		if err != nil {
			return lines, fmt.Errorf("%s: %w", text[at[0]:at[3]], err)
		}
		for _, row := range rows {
			i := slices.IndexFunc(lines.Lines, func(l chart.Line) bool { return l.Name == row.Name })
			if i < 0 {
				i = len(lines.Lines)
				lines.Lines = append(lines.Lines, chart.Line{Name: row.Name})
			}
			lines.Lines[i].X = append(lines.Lines[i].X, number(text[at[2]:at[3]]))
			lines.Lines[i].Values = append(lines.Lines[i].Values, row.Value)
		}
	}
	lines.Lines = slices.DeleteFunc(lines.Lines, func(l chart.Line) bool { return len(l.X) < len(found) })
	if len(lines.Lines) == 0 {
		return lines, errors.New("no server is in all tables")
	}
	return lines, nil
}

var cells = regexp.MustCompile(` {2,}`)

// readTable reads the first table of CPU per request in a text.
func readTable(text string) ([]chart.Bar, error) {
	_, text, ok := strings.Cut(text, "\nserver ")
	if !ok {
		return nil, errors.New("no table")
	}
	table := strings.Split("server "+text, "\n")
	head := cells.Split(table[0], -1)
	median, quartiles := slices.Index(head, "CPU median"), slices.Index(head, "quartiles")
	if median < 0 || quartiles < 0 {
		return nil, errors.New("a table without medians and quartiles")
	}
	var rows []chart.Bar
	for _, line := range table[1:] {
		row := cells.Split(line, -1)
		if len(row) != len(head) {
			break
		}
		low, high, _ := strings.Cut(row[quartiles], "-")
		var figures [3]float64
		for i, cell := range []string{row[median], low, high} {
			n, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				return nil, err
			}
			figures[i] = n
		}
		rows = append(rows, chart.Bar{Name: row[0], Value: chart.Value{Middle: figures[0], Low: figures[1], High: figures[2]}})
	}
	return rows, nil
}

// number is what a regular expression has found to be digits.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
