// Package deps tests the structure of the repository: the import order of the
// module, the doc.go in each package, the limits on the length of files and
// functions, and the links between the Markdown pages. It has no code.
//
// The policy is the table in policy_test.go. It states the intended order, not
// the imports that exist: change it only when the design changes, and give the
// reason beside the line.
//
// The package must not know what the others do. Nobody may import it.
package deps
