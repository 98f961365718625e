package http2

// The static table of RFC 7541 appendix A; index 0 is not used.
var static = [62]struct{ name, value string }{
	1:  {":authority", ""},
	2:  {":method", "GET"},
	3:  {":method", "POST"},
	4:  {":path", "/"},
	5:  {":path", "/index.html"},
	6:  {":scheme", "http"},
	7:  {":scheme", "https"},
	8:  {":status", "200"},
	9:  {":status", "204"},
	10: {":status", "206"},
	11: {":status", "304"},
	12: {":status", "400"},
	13: {":status", "404"},
	14: {":status", "500"},
	15: {"accept-charset", ""},
	16: {"accept-encoding", "gzip, deflate"},
	17: {"accept-language", ""},
	18: {"accept-ranges", ""},
	19: {"accept", ""},
	20: {"access-control-allow-origin", ""},
	21: {"age", ""},
	22: {"allow", ""},
	23: {"authorization", ""},
	24: {"cache-control", ""},
	25: {"content-disposition", ""},
	26: {"content-encoding", ""},
	27: {"content-language", ""},
	28: {"content-length", ""},
	29: {"content-location", ""},
	30: {"content-range", ""},
	31: {"content-type", ""},
	32: {"cookie", ""},
	33: {"date", ""},
	34: {"etag", ""},
	35: {"expect", ""},
	36: {"expires", ""},
	37: {"from", ""},
	38: {"host", ""},
	39: {"if-match", ""},
	40: {"if-modified-since", ""},
	41: {"if-none-match", ""},
	42: {"if-range", ""},
	43: {"if-unmodified-since", ""},
	44: {"last-modified", ""},
	45: {"link", ""},
	46: {"location", ""},
	47: {"max-forwards", ""},
	48: {"proxy-authenticate", ""},
	49: {"proxy-authorization", ""},
	50: {"range", ""},
	51: {"referer", ""},
	52: {"refresh", ""},
	53: {"retry-after", ""},
	54: {"server", ""},
	55: {"set-cookie", ""},
	56: {"strict-transport-security", ""},
	57: {"transfer-encoding", ""},
	58: {"user-agent", ""},
	59: {"vary", ""},
	60: {"via", ""},
	61: {"www-authenticate", ""},
}

// A NameID names a field of the static table: the first index of its name. 0 is any
// other field.
type NameID uint8

const (
	IDAuthority                NameID = 1
	IDMethod                   NameID = 2
	IDPath                     NameID = 4
	IDScheme                   NameID = 6
	IDProtocol                 NameID = 7 // which is not in the table: RFC 8441 section 4
	IDStatus                   NameID = 8
	IDAcceptCharset            NameID = 15
	IDAcceptEncoding           NameID = 16
	IDAcceptLanguage           NameID = 17
	IDAcceptRanges             NameID = 18
	IDAccept                   NameID = 19
	IDAccessControlAllowOrigin NameID = 20
	IDAge                      NameID = 21
	IDAllow                    NameID = 22
	IDAuthorization            NameID = 23
	IDCacheControl             NameID = 24
	IDContentDisposition       NameID = 25
	IDContentEncoding          NameID = 26
	IDContentLanguage          NameID = 27
	IDContentLength            NameID = 28
	IDContentLocation          NameID = 29
	IDContentRange             NameID = 30
	IDContentType              NameID = 31
	IDCookie                   NameID = 32
	IDDate                     NameID = 33
	IDETag                     NameID = 34
	IDExpect                   NameID = 35
	IDExpires                  NameID = 36
	IDFrom                     NameID = 37
	IDHost                     NameID = 38
	IDIfMatch                  NameID = 39
	IDIfModifiedSince          NameID = 40
	IDIfNoneMatch              NameID = 41
	IDIfRange                  NameID = 42
	IDIfUnmodifiedSince        NameID = 43
	IDLastModified             NameID = 44
	IDLink                     NameID = 45
	IDLocation                 NameID = 46
	IDMaxForwards              NameID = 47
	IDProxyAuthenticate        NameID = 48
	IDProxyAuthorization       NameID = 49
	IDRange                    NameID = 50
	IDReferer                  NameID = 51
	IDRefresh                  NameID = 52
	IDRetryAfter               NameID = 53
	IDServer                   NameID = 54
	IDSetCookie                NameID = 55
	IDStrictTransportSecurity  NameID = 56
	IDTransferEncoding         NameID = 57
	IDUserAgent                NameID = 58
	IDVary                     NameID = 59
	IDVia                      NameID = 60
	IDWWWAuthenticate          NameID = 61
)

// staticID is the NameID of each index.
var staticID = [62]NameID{0, 1, 2, 2, 4, 4, 6, 6, 8, 8, 8, 8, 8, 8, 8, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
	27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55,
	56, 57, 58, 59, 60, 61}

// canonical is each NameID's name as net/http writes it.
var canonical = [62]string{
	15: "Accept-Charset",
	16: "Accept-Encoding",
	17: "Accept-Language",
	18: "Accept-Ranges",
	19: "Accept",
	20: "Access-Control-Allow-Origin",
	21: "Age",
	22: "Allow",
	23: "Authorization",
	24: "Cache-Control",
	25: "Content-Disposition",
	26: "Content-Encoding",
	27: "Content-Language",
	28: "Content-Length",
	29: "Content-Location",
	30: "Content-Range",
	31: "Content-Type",
	32: "Cookie",
	33: "Date",
	34: "Etag",
	35: "Expect",
	36: "Expires",
	37: "From",
	38: "Host",
	39: "If-Match",
	40: "If-Modified-Since",
	41: "If-None-Match",
	42: "If-Range",
	43: "If-Unmodified-Since",
	44: "Last-Modified",
	45: "Link",
	46: "Location",
	47: "Max-Forwards",
	48: "Proxy-Authenticate",
	49: "Proxy-Authorization",
	50: "Range",
	51: "Referer",
	52: "Refresh",
	53: "Retry-After",
	54: "Server",
	55: "Set-Cookie",
	56: "Strict-Transport-Security",
	57: "Transfer-Encoding",
	58: "User-Agent",
	59: "Vary",
	60: "Via",
	61: "Www-Authenticate",
}

// Canonical is the name as net/http writes it, "" for pseudo-fields and for 0.
func (id NameID) Canonical() string { return canonical[id] }

// Name is the name as HTTP/2 writes it.
func (id NameID) Name() string {
	if id == IDProtocol {
		return ":protocol"
	}
	return static[id].name
}

// nameID looks a canonical name up.
func nameID(name string) NameID {
	switch name {
	case "Accept-Charset":
		return 15
	case "Accept-Encoding":
		return 16
	case "Accept-Language":
		return 17
	case "Accept-Ranges":
		return 18
	case "Accept":
		return 19
	case "Access-Control-Allow-Origin":
		return 20
	case "Age":
		return 21
	case "Allow":
		return 22
	case "Authorization":
		return 23
	case "Cache-Control":
		return 24
	case "Content-Disposition":
		return 25
	case "Content-Encoding":
		return 26
	case "Content-Language":
		return 27
	case "Content-Length":
		return 28
	case "Content-Location":
		return 29
	case "Content-Range":
		return 30
	case "Content-Type":
		return 31
	case "Cookie":
		return 32
	case "Date":
		return 33
	case "Etag":
		return 34
	case "Expect":
		return 35
	case "Expires":
		return 36
	case "From":
		return 37
	case "Host":
		return 38
	case "If-Match":
		return 39
	case "If-Modified-Since":
		return 40
	case "If-None-Match":
		return 41
	case "If-Range":
		return 42
	case "If-Unmodified-Since":
		return 43
	case "Last-Modified":
		return 44
	case "Link":
		return 45
	case "Location":
		return 46
	case "Max-Forwards":
		return 47
	case "Proxy-Authenticate":
		return 48
	case "Proxy-Authorization":
		return 49
	case "Range":
		return 50
	case "Referer":
		return 51
	case "Refresh":
		return 52
	case "Retry-After":
		return 53
	case "Server":
		return 54
	case "Set-Cookie":
		return 55
	case "Strict-Transport-Security":
		return 56
	case "Transfer-Encoding":
		return 57
	case "User-Agent":
		return 58
	case "Vary":
		return 59
	case "Via":
		return 60
	case "Www-Authenticate":
		return 61
	}
	return 0
}

// names is static, by the names on the wire.
var names = func() map[string]NameID {
	m := make(map[string]NameID, len(static))
	for i := len(static) - 1; i > 0; i-- {
		m[static[i].name] = NameID(i)
	}
	m[":protocol"] = IDProtocol
	return m
}()

// lookupName looks up a name as it is on the wire.
func lookupName(name []byte) NameID { return names[string(name)] }
