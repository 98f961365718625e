// Package profile contains the measurements that the lab can make, by name.
//
// To add a measurement that puts servers under one load and compares their processor time, add a scene to scenes. Any
// other is a Profile in All.
package profile

// The parts meet here: rival starts the servers, load sends requests, measure reads their cost, report writes tables,
// chart draws.
