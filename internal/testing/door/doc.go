// Package door is a proxy between a client and a server of a test, which cuts connections.
package door

// Only tests may import it. It imports nothing of the project.
