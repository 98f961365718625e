// Package handler contains the handlers of those servers under test that use http.Handler, written as for net/http.
package handler
