// Package leak finds goroutines of this module and descriptors that tests have
// leaked.
package leak

// It depends only on the module's path, not on the code under test. Only tests
// import it, from TestMain.
