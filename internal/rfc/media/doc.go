// Package media tells the media type of a file from its name.
//
// It has a table of its own, so that what the web is made of is the same on
// every machine, and asks package mime, whose answers depend on the system's
// files, only for the rest. It must not look at content, and knows neither
// files nor HTTP messages. It imports std only. static and middleware may
// import it.
package media
