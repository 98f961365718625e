package user

// Key is the key of the name, a *string, among the values of a request.
type Key struct{}

// Of returns the name, "" if there is none. v is the context of a request, or an
// exchange.
func Of(v interface{ Value(key any) any }) string {
	if name, ok := v.Value(Key{}).(*string); ok {
		return *name
	}
	return ""
}
