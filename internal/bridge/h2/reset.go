package h2

import (
	"fmt"
	"reflect"

	"github.com/chert-http/chert/internal/http2"
)

// resetError is that the client has reset a stream. To errors.As it is also net/http's error, which
// has no name outside of that: any struct with the same fields, such as the StreamError of
// golang.org/x/net/http2. Handlers such as grpc-go's tell a cancelled request by it.
type resetError struct {
	StreamID uint32
	Code     http2.ErrCode
	Cause    error
}

// Error returns the text of net/http's.
func (e *resetError) Error() string {
	return fmt.Sprintf("stream error: stream ID %d; %v", e.StreamID, e.Code)
}

// As is for errors.As.
func (e *resetError) As(target any) bool {
	to, from := reflect.ValueOf(target).Elem(), reflect.ValueOf(*e)
	if to.Kind() != reflect.Struct || to.NumField() != from.NumField() {
		return false
	}
	for i := range from.NumField() {
		f, t := from.Type().Field(i), to.Type().Field(i)
		if f.Name != t.Name || !f.Type.ConvertibleTo(t.Type) {
			return false
		}
	}
	for i := range from.NumField() {
		to.Field(i).Set(from.Field(i).Convert(to.Field(i).Type()))
	}
	return true
}
