// Package leak finds goroutines of this module and descriptors that tests have
// leaked.
package leak

// It knows nothing of the code under test but the module's path. Only tests
// import it, from TestMain.
