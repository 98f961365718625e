package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Drawing is any of the diagrams.
type Drawing interface {
	// Save writes DIR/NAME.svg and DIR/NAME.png, and on a dark ground NAME-dark.svg and NAME-dark.png.
	Save(dir, name string) error
}

// theme is the colours of a diagram.
type theme struct {
	suffix            string // of the name of its file
	ground, ink, grid color.Color
	colours           []color.Color
}

// colour is the one of the i-th series.
func (t theme) colour(i int) color.Color { return t.colours[i%len(t.colours)] }

func rgb(v uint32) color.Color { return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff} }

// themes: the colours are those of Okabe and Ito, which colour-blind readers can distinguish, and on the dark ground
// lighter ones in the same order.
var themes = []theme{
	{"", color.White, color.Black, rgb(0xd0d0d0),
		[]color.Color{rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xcc79a7), rgb(0xb97d00), rgb(0x56b4e9), rgb(0x666666), rgb(0x7a4fb5), rgb(0x8b2e2e), rgb(0x3d6b1f)}},
	{"-dark", rgb(0x0d1117), rgb(0xe6edf3), rgb(0x3d444d),
		[]color.Color{rgb(0x58b0ee), rgb(0xff8c42), rgb(0x2ec79b), rgb(0xe39ac4), rgb(0xf0b73d), rgb(0x9bd6f7), rgb(0xb0b0b0), rgb(0xb79bea), rgb(0xd97a7a), rgb(0x9bc27e)}},
}

const (
	height = 4.5 * vg.Inch
	margin = 10 // points
)

// saveAll writes a diagram in all themes and formats. A plot is drawn anew for each: its parts hold their colours.
func saveAll(drawn func(theme) (*plot.Plot, vg.Length, error), dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, t := range themes {
		p, width, err := drawn(t)
		if err != nil {
			return fmt.Errorf("draw %s: %w", name, err)
		}
		for _, format := range []string{"svg", "png"} {
			if err := save(p, t, width, filepath.Join(dir, name+t.suffix), format); err != nil {
				return err
			}
		}
	}
	return nil
}

func save(p *plot.Plot, t theme, width vg.Length, path, format string) error {
	canvas, err := draw.NewFormattedCanvas(width, height, format)
	if err != nil {
		return err
	}
	whole := draw.New(canvas)
	whole.SetColor(t.ground)
	whole.Fill(whole.Rectangle.Path())
	p.Draw(draw.Crop(whole, margin, -margin, margin, -margin))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return fmt.Errorf("draw %s.%s: %w", path, format, err)
	}
	return os.WriteFile(path+"."+format, b.Bytes(), 0o644)
}
