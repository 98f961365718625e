package place

// Method is the number of a common method (RFC 9110 section 9, and PATCH); 0 is
// any other.
type Method uint8

var methodNames = [...]string{"", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"}

// MethodOf returns a method's number.
func MethodOf(name string) Method {
	switch name {
	case "GET":
		return 1
	case "HEAD":
		return 2
	case "POST":
		return 3
	case "PUT":
		return 4
	case "PATCH":
		return 5
	case "DELETE":
		return 6
	case "CONNECT":
		return 7
	case "OPTIONS":
		return 8
	case "TRACE":
		return 9
	}
	return 0
}

// String returns the method's name, "" for 0.
func (m Method) String() string { return methodNames[m] }
