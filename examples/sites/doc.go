// Package sites tests the configurations in the folders beside it: each is served by chert,
// and by nginx with the configuration beside it, with the same answers.
package sites
