// Package sim_test runs the whole server on a simulated kernel, with clients that know what
// they must receive.
package sim
