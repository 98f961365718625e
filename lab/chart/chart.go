package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
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

// colours can be distinguished by colour-blind readers: those of Okabe and Ito.
var colours = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
}

const (
	height   = 4.5 * vg.Inch
	margin   = 10 // points
	barWidth = 36
	barSpace = 80 // for a bar and its name
)

// Save writes DIR/NAME.svg and DIR/NAME.png.
func (b Bars) Save(dir, name string) error {
	p := newPlot(b.Title, b.Axis)
	values := make(plotter.Values, len(b.Bars))
	names := make([]string, len(b.Bars))
	var spread spreads
	longest := 0
	for i, bar := range b.Bars {
		values[i], names[i] = bar.Middle, bar.Name
		spread.add(float64(i), bar.Value)
		longest = max(longest, len(bar.Name))
	}
	bars, err := plotter.NewBarChart(values, vg.Points(barWidth))
	if err != nil {
		return err
	}
	bars.Color, bars.LineStyle.Width = colours[0], 0
	errorBars, err := plotter.NewYErrorBars(spread)
	if err != nil {
		return err
	}
	labels, err := plotter.NewLabels(spread.labels())
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].XAlign = draw.XCenter
	}
	labels.Offset.Y = vg.Points(4)
	p.Add(bars, errorBars, labels)
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.6, float64(len(names))-0.4 // or the outer bars are cut in half
	p.Y.Min = 0
	p.Y.Max *= 1.08 // room for the highest label
	// A name takes about 6 points a letter.
	width := vg.Points(float64(120 + len(b.Bars)*max(barSpace, 6*longest+20)))
	return save(p, max(width, titleWidth(b.Title)), dir, name)
}

// Save writes DIR/NAME.svg and DIR/NAME.png.
func (l Lines) Save(dir, name string) error {
	p := newPlot(l.Title, l.YAxis)
	p.X.Label.Text = l.XAxis
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.Y.Tick.Marker = plot.TickerFunc(roundTicks)
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	var ticks plot.ConstantTicks
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
			return err
		}
		errorBars, err := plotter.NewYErrorBars(spread)
		if err != nil {
			return err
		}
		colour := colours[i%len(colours)]
		drawn.Color, dots.Color, errorBars.Color = colour, colour, colour
		drawn.Width, dots.Shape = vg.Points(1.5), draw.CircleGlyph{}
		p.Add(drawn, dots, errorBars)
		p.Legend.Add(line.Name, drawn, dots)
	}
	p.X.Tick.Marker = ticks
	p.X.Max *= math.Pow(p.X.Max/p.X.Min, 0.25) // room for the legend beside the lines
	p.Y.Min, p.Y.Max = p.Y.Min/1.1, p.Y.Max*1.1
	return save(p, max(7*vg.Inch, titleWidth(l.Title)), dir, name)
}

func newPlot(title, axis string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.Title.Padding = title, vg.Points(10)
	p.Y.Label.Text, p.Y.Label.Padding = axis, vg.Points(5)
	p.X.Padding, p.Y.Padding = vg.Points(4), 0
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
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
				ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', -1, 64)})
			}
		}
	}
	return ticks
}

func save(p *plot.Plot, width vg.Length, dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, format := range []string{"svg", "png"} {
		canvas, err := draw.NewFormattedCanvas(width, height, format)
		if err != nil {
			return err
		}
		whole := draw.New(canvas)
		whole.SetColor(color.White)
		whole.Fill(whole.Rectangle.Path())
		p.Draw(draw.Crop(whole, margin, -margin, margin, -margin))
		var b bytes.Buffer
		if _, err := canvas.WriteTo(&b); err != nil {
			return fmt.Errorf("draw %s.%s: %w", name, format, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+"."+format), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
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

// short has three digits, or all before the point.
func short(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
