// Package media returns the media type of a file by its name.
//
// It has a table of its own, so that the usual files of the web have the same
// type on every machine. For all other extensions it asks package mime, whose
// answers depend on the system's files.
package media

// It must not inspect content, and knows neither files nor HTTP messages. It
// imports std only. static and middleware may import it.
