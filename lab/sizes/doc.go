// Package sizes measures how much there is to read in chert: lines of packages, methods of its contracts, fields of its
// types, and the places where panics are caught. Tests are not counted.
package sizes
