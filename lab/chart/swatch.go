package chart

import (
	"image/color"

	"gonum.org/v1/plot/vg/draw"
)

// swatch is a field of colour in a legend.
type swatch struct{ colour color.Color }

// Thumbnail implements plot.Thumbnailer.
func (s swatch) Thumbnail(c *draw.Canvas) {
	c.SetColor(s.colour)
	c.Fill(c.Rectangle.Path())
}
