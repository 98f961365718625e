// Package view converts between strings and bytes without a copy.
//
// There is one rule: the memory must not change while both are in use. A string that is a
// view of a buffer is for comparisons, look-ups and calls that do not retain it; what is
// retained is copied.
package view

// It is the only package that makes views of whole strings and slices, so that a search
// for its name finds all places where the rule matters. It imports nothing.
