// Package stages tests the four small servers in its folders, which are a course in how servers get fast: README.md.
package stages
