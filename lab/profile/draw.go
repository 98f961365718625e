package profile

import (
	"errors"
	"fmt"

	"github.com/chert-http/chert/lab/chart"
	"github.com/chert-http/chert/lab/report"
)

const cpuAxis = "CPU microseconds per request"

// plot draws each table of a report, and lines over the numbers of connections if there are several.
func plot(f report.File, dir string) error {
	for _, c := range f.Comparisons {
		bars := chart.Bars{Title: fmt.Sprintf("%s, %d connections: median and quartiles", f.Profile, c.Connections), Axis: cpuAxis}
		for _, s := range c.Series {
			bars.Bars = append(bars.Bars, chart.Bar{Name: s.Server, Value: cpuValue(s)})
		}
		if err := bars.Save(dir, fmt.Sprintf("%s-%d", f.Profile, c.Connections)); err != nil {
			return err
		}
	}
	if len(f.Comparisons) > 1 {
		lines := overConnections(f)
		if len(lines.Lines) == 0 {
			return errors.New("no server answered any request: there are no lines to draw")
		}
		if err := lines.Save(dir, f.Profile+"-lines"); err != nil {
			return err
		}
	}
	for i, b := range f.Besides {
		bars := chart.Bars{Title: f.Profile + ", " + b.Slow + ": median and quartiles", Axis: "p99 of fast requests beside slow ones, ms"}
		for _, s := range b.Series {
			median, low, high := s.P99()
			bars.Bars = append(bars.Bars, chart.Bar{Name: s.Server, Value: chart.Value{Middle: median, Low: low, High: high}})
		}
		if err := bars.Save(dir, fmt.Sprintf("%s-%d", f.Profile, i+1)); err != nil {
			return err
		}
	}
	if f.Readers != nil {
		bars := chart.Bars{Title: f.Profile + ": median and quartiles", Axis: "rate of a fast download beside slow ones, as a part of that alone"}
		for _, s := range f.Readers.Series {
			median, low, high := s.Kept()
			bars.Bars = append(bars.Bars, chart.Bar{Name: s.Server, Value: chart.Value{Middle: median, Low: low, High: high}})
		}
		if err := bars.Save(dir, f.Profile); err != nil {
			return err
		}
	}
	if f.Idle == nil {
		return nil
	}
	bars := chart.Bars{Title: f.Idle.Title, Axis: "resident bytes per connection"}
	for _, p := range f.Idle.PerConnection() {
		bars.Bars = append(bars.Bars, chart.Bar{Name: p.Server, Value: chart.Value{Middle: p.Resident, Low: p.Resident, High: p.Resident}})
	}
	return bars.Save(dir, f.Profile)
}

func overConnections(f report.File) chart.Lines {
	lines := chart.Lines{Title: f.Profile + ": median and quartiles", XAxis: "connections", YAxis: cpuAxis}
	for i, s := range f.Comparisons[0].Series {
		line := chart.Line{Name: s.Server}
		for _, c := range f.Comparisons {
			if v := cpuValue(c.Series[i]); v.Low > 0 { // a server may have answered nothing
				line.X = append(line.X, c.Connections)
				line.Values = append(line.Values, v)
			}
		}
		if line.X != nil {
			lines.Lines = append(lines.Lines, line)
		}
	}
	return lines
}

func cpuValue(s report.Series) chart.Value {
	low, high := s.CPUQuartiles()
	return chart.Value{Middle: s.CPU().Median, Low: low, High: high}
}
