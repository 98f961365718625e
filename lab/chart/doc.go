// Package chart draws figures as bars or lines, each into one SVG and one PNG file.
//
// It knows nothing of what the figures are. No other package of the lab imports the plotting library.
package chart
