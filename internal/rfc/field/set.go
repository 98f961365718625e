package field

import (
	"errors"
	"net/http"

	"github.com/chert-http/chert/direct/wire"
)

// CheckSet returns an error, in words that follow the name, if a field cannot be set to a
// value in responses of all handlers, whatever their bodies are; "" removes it.
func CheckSet(name, value string) error {
	// A coding that the body does not have, or one that it has and that is not stated.
	if http.CanonicalHeaderKey(name) == "Content-Encoding" {
		return errors.New("cannot be set: it belongs to what makes the body")
	}
	return wire.CheckField(name, value)
}

// CheckAdd is CheckSet for a value that is added to those of the handler.
func CheckAdd(name, value string) error {
	switch {
	case value == "":
		return errors.New("has no value")
	case http.CanonicalHeaderKey(name) == "Content-Type":
		return errors.New("cannot be there twice")
	}
	return CheckSet(name, value)
}
