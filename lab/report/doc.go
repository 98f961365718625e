// Package report formats measurements as tables and JSON.
package report

// It contains arithmetic and text only.
