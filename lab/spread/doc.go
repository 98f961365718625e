// Package spread measures limits by address without a store: three instances of chert behind a chert that chooses by the
// client's address, and what changes when an instance comes or goes.
package spread
