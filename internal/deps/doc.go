// Package deps holds no code, only tests: they enforce the import order of the
// module, the doc.go in each package, the limits on the length of files and
// functions, and that links between the Markdown pages lead somewhere.
//
// The policy is the table in policy_test.go. It is a statement of intent, not
// a record of what happens to be imported: change it only when the design
// changes, and say why beside the line.
//
// The package must not know what the others do. Nobody may import it.
package deps
