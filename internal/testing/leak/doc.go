// Package leak finds what tests have left behind in their process: goroutines of
// this module, and descriptors.
//
// It knows nothing of what it looks for but the module's path. Tests alone
// import it, from TestMain.
package leak
