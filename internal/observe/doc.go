// Package observe is what a server knows of itself: what it has counted, what it does at
// the moment, what it has refused, what the placement has learned, and which handlers
// take long. It logs what loops report, so that they do not wait for a slow log.
package observe

// It asks loops and connections, and does not drive them. Nothing here knows protocols or
// handlers; only the root imports it. docs/adr/0042-statistics.md has the reasons.
