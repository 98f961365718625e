package chart

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Value is one figure with its spread.
type Value struct {
	Middle, Low, High float64
}

// Bar is a figure with a name.
type Bar struct {
	Name string
	Value
}

// Bars is a diagram of bars, side by side.
type Bars struct {
	Title, Axis string
	Bars        []Bar
}

// Line is figures that depend on a number.
type Line struct {
	Name   string
	X      []int
	Values []Value
}

// Lines is a diagram of lines over a common axis. Both axes are logarithmic, so that equal distances are equal ratios;
// figures must be above 0.
type Lines struct {
	Title, XAxis, YAxis string
	Lines               []Line
}

const (
	barWidth = 36
	barSpace = 80 // for a bar and its name
)

// Save writes DIR/NAME.svg and DIR/NAME.png, and on a dark ground NAME-dark.svg and NAME-dark.png.
func (b Bars) Save(dir, name string) error { return saveAll(b.draw, dir, name) }

func (b Bars) draw(t theme) (*plot.Plot, vg.Length, error) {
	p := newPlot(t, b.Title, b.Axis)
	values := make(plotter.Values, len(b.Bars))
	names := make([]string, len(b.Bars))
	var spread spreads
	longest := 0
	for i, bar := range b.Bars {
		values[i], names[i] = bar.Middle, bar.Name
		spread.add(float64(i), bar.Value)
		longest = max(longest, len(bar.Name))
	}
	if err := addBars(p, t, values, spread, 0, 0, vg.Points(barWidth)); err != nil {
		return nil, 0, err
	}
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.6, float64(len(names))-0.4 // or the outer bars are cut in half
	p.Y.Min = 0
	p.Y.Max *= 1.08 // room for the highest label
	// A name takes about 6 points a letter.
	width := vg.Points(float64(120 + len(b.Bars)*max(barSpace, 6*longest+20)))
	return p, max(width, titleWidth(b.Title)), nil
}

// addBars draws bars with their spread, and each one's figure above it. offset shifts them beside their places.
func addBars(p *plot.Plot, t theme, values plotter.Values, spread spreads, colour int, offset, width vg.Length) error {
	bars, err := plotter.NewBarChart(values, width)
	if err != nil {
		return err
	}
	bars.Color, bars.LineStyle.Width, bars.Offset = t.colour(colour), 0, offset
	labels, err := plotter.NewLabels(spread.labels())
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].XAlign, labels.TextStyle[i].Color = draw.XCenter, t.ink
	}
	labels.Offset = vg.Point{X: offset, Y: vg.Points(4)}
	p.Add(bars)
	if offset == 0 { // the library cannot shift error bars
		errorBars, err := plotter.NewYErrorBars(spread)
		if err != nil {
			return err
		}
		errorBars.Color = t.ink
		p.Add(errorBars)
	}
	p.Add(labels)
	return nil
}

// Save writes DIR/NAME.svg and DIR/NAME.png, and on a dark ground NAME-dark.svg and NAME-dark.png.
func (l Lines) Save(dir, name string) error { return saveAll(l.draw, dir, name) }

func (l Lines) draw(t theme) (*plot.Plot, vg.Length, error) {
	p := newPlot(t, l.Title, l.YAxis)
	p.X.Label.Text = l.XAxis
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.Y.Tick.Marker = plot.TickerFunc(roundTicks)
	var ticks plot.ConstantTicks
	var ends []ending
	seen := map[int]bool{}
	for i, line := range l.Lines {
		var points plotter.XYs
		var spread spreads
		for k, x := range line.X {
			points = append(points, plotter.XY{X: float64(x), Y: line.Values[k].Middle})
			spread.add(float64(x), line.Values[k])
			if !seen[x] {
				seen[x] = true
				ticks = append(ticks, plot.Tick{Value: float64(x), Label: strconv.Itoa(x)})
			}
		}
		drawn, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, 0, err
		}
		errorBars, err := plotter.NewYErrorBars(spread)
		if err != nil {
			return nil, 0, err
		}
		colour := t.colour(i)
		drawn.Color, dots.Color, errorBars.Color = colour, colour, colour
		drawn.Width, dots.Shape = vg.Points(1.5), draw.CircleGlyph{}
		p.Add(drawn, dots, errorBars)
		ends = append(ends, ending{line.Name, points[len(points)-1], colour})
	}
	p.X.Tick.Marker = ticks
	if p.X.Min == p.X.Max { // one number: a logarithmic axis needs a range
		p.X.Min, p.X.Max = p.X.Min/2, p.X.Max*2
	}
	p.Y.Min, p.Y.Max = p.Y.Min/1.1, p.Y.Max*1.1
	last := p.X.Max
	p.X.Max *= math.Pow(p.X.Max/p.X.Min, nameRoom) // room for the names beside the lines
	if err := addNames(p, ends, last); err != nil {
		return nil, 0, err
	}
	return p, max(7.5*vg.Inch, titleWidth(l.Title)), nil
}

// ending is where a line ends, for its name.
type ending struct {
	name   string
	at     plotter.XY
	colour color.Color
}

const (
	nameRoom  = 0.35 // of the x axis, added for the names of the lines
	nameApart = 0.06 // of the y axis, at least, between two names
)

// addNames writes the name of each line beside its end. Names that would cover each other are moved apart.
func addNames(p *plot.Plot, ends []ending, x float64) error {
	low, high := math.Log(p.Y.Min), math.Log(p.Y.Max)
	slices.SortStableFunc(ends, func(a, b ending) int { return cmp.Compare(a.at.Y, b.at.Y) })
	heights := make([]float64, len(ends))
	for i, e := range ends {
		heights[i] = (math.Log(e.at.Y) - low) / (high - low)
		if i > 0 {
			heights[i] = max(heights[i], heights[i-1]+nameApart)
		}
	}
	top := 1.0
	for i := range slices.Backward(heights) { // what was pushed out at the top comes back
		heights[i] = min(heights[i], top)
		top = heights[i] - nameApart
	}
	for i, e := range ends {
		label, err := plotter.NewLabels(plotter.XYLabels{
			XYs:    plotter.XYs{{X: max(e.at.X, x), Y: math.Exp(low + heights[i]*(high-low))}},
			Labels: []string{e.name},
		})
		if err != nil {
			return err
		}
		label.TextStyle[0].Color, label.TextStyle[0].YAlign = e.colour, draw.YCenter
		label.Offset.X = vg.Points(8)
		p.Add(label)
	}
	return nil
}

func newPlot(t theme, title, axis string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = t.ground
	p.Title.Text, p.Title.Padding = title, vg.Points(10)
	p.Y.Label.Text, p.Y.Label.Padding = axis, vg.Points(5)
	p.X.Padding, p.Y.Padding = vg.Points(4), 0
	p.Title.TextStyle.Color, p.Legend.TextStyle.Color = t.ink, t.ink
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Color, axis.Tick.Label.Color = t.ink, t.ink
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = t.ink, t.ink
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(shortTicks), plot.TickerFunc(shortTicks)
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal.Color = t.grid
	p.Add(grid)
	return p
}

// titleWidth is how wide a diagram must be for its title, in the library's default size.
func titleWidth(title string) vg.Length { return vg.Points(float64(6*len(title) + 40)) }

// roundTicks marks 1, 2, 5, 10, 20 and so on.
func roundTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for decade := math.Floor(math.Log10(low)); math.Pow(10, decade) <= high; decade++ {
		for _, digit := range []float64{1, 2, 5} {
			if v := digit * math.Pow(10, decade); low <= v && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: tickText(v)})
			}
		}
	}
	return ticks
}

// tickText is a round figure in full, or in thousands and millions.
func tickText(v float64) string {
	if v >= 1e4 {
		return short(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// spreads is the form the library wants error bars in.
type spreads struct {
	plotter.XYs
	plotter.YErrors
}

func (s *spreads) add(x float64, v Value) {
	s.XYs = append(s.XYs, plotter.XY{X: x, Y: v.Middle})
	s.YErrors = append(s.YErrors, struct{ Low, High float64 }{v.Middle - v.Low, v.High - v.Middle})
}

// labels has each figure in numbers, above its error bar.
func (s *spreads) labels() plotter.XYLabels {
	var l plotter.XYLabels
	for i, p := range s.XYs {
		l.XYs = append(l.XYs, plotter.XY{X: p.X, Y: p.Y + s.YErrors[i].High})
		l.Labels = append(l.Labels, short(p.Y))
	}
	return l
}

// short has three digits, or all before the point; from ten thousand on, thousands and millions.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + "M"
	case v >= 1e4:
		return strconv.FormatFloat(v/1e3, 'f', 0, 64) + "k"
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// shortTicks are the library's, with shorter figures.
func shortTicks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = short(ticks[i].Value)
		}
	}
	return ticks
}
