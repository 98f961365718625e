// Package profile holds the measurements the lab can make, by name. Here the parts meet: rival starts the servers, load
// asks them, measure takes their cost, report writes it down.
//
// To add a measurement, write a Profile and enter it in All. One that differs from hello only in what is asked needs no
// more than another load for Compare.
package profile
