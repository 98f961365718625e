// Package faults has tests of clients, handlers and systems that fail, stall or
// attack: limits, time, resets, smuggling, descriptors, shutdown under load. It is
// tests only.
package faults
