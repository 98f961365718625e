package place

// Method is the number of a common method (RFC 9110 section 9, and PATCH); 0 is
// any other.
type Method uint8

var methodNames = [...]string{"", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"}

// MethodOf returns a method's number.
func MethodOf(name string) Method {
	for i, m := range methodNames {
		if m == name {
			return Method(i)
		}
	}
	return 0
}

// String returns the method's name, "" for 0.
func (m Method) String() string { return methodNames[m] }
