package chart

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Groups is a diagram of bars in groups: for each name one bar of each kind.
type Groups struct {
	Title, Axis string
	Names       []string // of the groups
	Kinds       []Kind
}

// Kind is the bars of one colour.
type Kind struct {
	Name   string
	Values []float64 // one for each group; 0 for none
}

// Save writes DIR/NAME.svg and DIR/NAME.png, and on a dark ground NAME-dark.svg and NAME-dark.png.
func (g Groups) Save(dir, name string) error { return saveAll(g.draw, dir, name) }

// groupBar is the width of a bar in a group, in points: its figure must fit above it.
const groupBar = 30

func (g Groups) draw(t theme) (*plot.Plot, vg.Length, error) {
	p := newPlot(t, g.Title, g.Axis)
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	longest := 0
	for _, name := range g.Names {
		longest = max(longest, 6*len(name)+20)
	}
	for i, kind := range g.Kinds {
		var spread spreads
		for k, v := range kind.Values {
			spread.add(float64(k), Value{v, v, v})
		}
		offset := vg.Points(groupBar * (float64(i) - float64(len(g.Kinds)-1)/2))
		if offset == 0 {
			offset = 0.01 // see addBars: a single figure has no spread to draw
		}
		if err := addBars(p, t, kind.Values, spread, i, offset, vg.Points(groupBar-2)); err != nil {
			return nil, 0, err
		}
		p.Legend.Add(kind.Name, swatch{t.colour(i)})
	}
	p.NominalX(g.Names...)
	group := max(longest, groupBar*len(g.Kinds)+24)
	legend := 0 // beside the bars, not over them
	for _, kind := range g.Kinds {
		legend = max(legend, 7*len(kind.Name)+40)
	}
	p.X.Min = -0.5
	p.X.Max = float64(len(g.Names)) - 0.5 + float64(legend)/float64(group)
	p.Y.Min = 0
	p.Y.Max *= 1.1 // room for the highest figure
	width := vg.Points(float64(100 + len(g.Names)*group + legend))
	return p, max(width, titleWidth(g.Title)), nil
}

// Stacks is a diagram of horizontal bars, each divided into parts.
type Stacks struct {
	Title, Axis string
	Names       []string // of the bars, from the top
	Parts       []Kind   // a value for each bar, from the left
}

// Save writes DIR/NAME.svg and DIR/NAME.png, and on a dark ground NAME-dark.svg and NAME-dark.png.
func (s Stacks) Save(dir, name string) error { return saveAll(s.draw, dir, name) }

func (s Stacks) draw(t theme) (*plot.Plot, vg.Length, error) {
	p := newPlot(t, s.Title, "")
	p.X.Label.Text = s.Axis
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	p.Legend.XOffs = vg.Points(-4)
	bottom := make([]float64, len(s.Names))
	var longest float64
	for i := range s.Names {
		var sum float64
		for _, part := range s.Parts {
			sum += part.Values[i]
		}
		longest = max(longest, sum)
	}
	var below *plotter.BarChart
	var above []plot.Plotter // figures, which later bars would cover
	for i, part := range s.Parts {
		values := make(plotter.Values, len(s.Names))
		var labels plotter.XYLabels
		for k, v := range part.Values {
			row := len(s.Names) - 1 - k // the first name is at the top
			values[row] = v
			if v > 0.06*longest { // or its figure would not fit
				labels.XYs = append(labels.XYs, plotter.XY{X: bottom[row] + v/2, Y: float64(row)})
				labels.Labels = append(labels.Labels, short(v))
			}
			bottom[row] += v
		}
		bars, err := plotter.NewBarChart(values, vg.Points(28))
		if err != nil {
			return nil, 0, err
		}
		bars.Horizontal, bars.Color, bars.LineStyle.Width = true, t.colour(i), 0
		if below != nil {
			bars.StackOn(below)
		}
		below = bars
		p.Add(bars)
		p.Legend.Add(part.Name, swatch{t.colour(i)})
		if len(labels.Labels) == 0 {
			continue
		}
		figures, err := plotter.NewLabels(labels)
		if err != nil {
			return nil, 0, err
		}
		for k := range figures.TextStyle {
			figures.TextStyle[k].XAlign, figures.TextStyle[k].YAlign = draw.XCenter, draw.YCenter
			figures.TextStyle[k].Color = t.ground
		}
		above = append(above, figures)
	}
	p.Add(above...)
	names := make([]string, len(s.Names))
	for k, name := range s.Names {
		names[len(names)-1-k] = name
	}
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.6, float64(len(names))-0.4
	p.X.Min = 0
	p.X.Max = longest * 1.45 // room for the legend
	return p, max(8.5*vg.Inch, titleWidth(s.Title)), nil
}
