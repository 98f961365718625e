// Package chart draws figures as bars or lines, as one SVG and one PNG file each.
package chart

// It does not know what the figures mean. No other package of the lab imports the plotting library.
