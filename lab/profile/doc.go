// Package profile holds the measurements the lab can make, by name. Here the parts meet: rival starts the servers, load
// asks them, measure takes their cost, report writes it down, chart draws it.
//
// To add a measurement that puts servers under one load and compares their processor time, enter a scene in scenes. Any
// other is a Profile in All.
package profile
