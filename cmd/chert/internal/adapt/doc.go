// Package adapt translates configurations of nginx and Caddy into chert's: what it knows, with
// the same meaning, and a note with its line for each directive that it leaves out.
package adapt

// Text in, text out: it opens no file and knows no server. It shares the hints for what chert
// does not have with package config.
