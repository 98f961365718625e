// Package faults tests clients, handlers and systems that fail, stall or
// attack: limits, time, resets, smuggling, descriptors, shutdown under load. It
// contains tests only.
package faults
