// Package handler is what the servers that take an http.Handler serve, written as one would for net/http.
package handler
