package pack

import "net/textproto"

// A NameID names a field that the static table of HPACK or that of QPACK has. 0 is any
// other field. Up to IDWWWAuthenticate it is the first index of the name in HPACK's table
// (RFC 7541 appendix A); the names after it are in QPACK's alone (RFC 9204 appendix A).
type NameID uint8

const (
	IDAuthority                     NameID = 1
	IDMethod                        NameID = 2
	IDPath                          NameID = 4
	IDScheme                        NameID = 6
	IDProtocol                      NameID = 7 // in neither table: RFC 8441 section 4
	IDStatus                        NameID = 8
	IDAcceptCharset                 NameID = 15
	IDAcceptEncoding                NameID = 16
	IDAcceptLanguage                NameID = 17
	IDAcceptRanges                  NameID = 18
	IDAccept                        NameID = 19
	IDAccessControlAllowOrigin      NameID = 20
	IDAge                           NameID = 21
	IDAllow                         NameID = 22
	IDAuthorization                 NameID = 23
	IDCacheControl                  NameID = 24
	IDContentDisposition            NameID = 25
	IDContentEncoding               NameID = 26
	IDContentLanguage               NameID = 27
	IDContentLength                 NameID = 28
	IDContentLocation               NameID = 29
	IDContentRange                  NameID = 30
	IDContentType                   NameID = 31
	IDCookie                        NameID = 32
	IDDate                          NameID = 33
	IDETag                          NameID = 34
	IDExpect                        NameID = 35
	IDExpires                       NameID = 36
	IDFrom                          NameID = 37
	IDHost                          NameID = 38
	IDIfMatch                       NameID = 39
	IDIfModifiedSince               NameID = 40
	IDIfNoneMatch                   NameID = 41
	IDIfRange                       NameID = 42
	IDIfUnmodifiedSince             NameID = 43
	IDLastModified                  NameID = 44
	IDLink                          NameID = 45
	IDLocation                      NameID = 46
	IDMaxForwards                   NameID = 47
	IDProxyAuthenticate             NameID = 48
	IDProxyAuthorization            NameID = 49
	IDRange                         NameID = 50
	IDReferer                       NameID = 51
	IDRefresh                       NameID = 52
	IDRetryAfter                    NameID = 53
	IDServer                        NameID = 54
	IDSetCookie                     NameID = 55
	IDStrictTransportSecurity       NameID = 56
	IDTransferEncoding              NameID = 57
	IDUserAgent                     NameID = 58
	IDVary                          NameID = 59
	IDVia                           NameID = 60
	IDWWWAuthenticate               NameID = 61
	IDAccessControlAllowCredentials NameID = 62
	IDAccessControlAllowHeaders     NameID = 63
	IDAccessControlAllowMethods     NameID = 64
	IDAccessControlExposeHeaders    NameID = 65
	IDAccessControlRequestHeaders   NameID = 66
	IDAccessControlRequestMethod    NameID = 67
	IDAltSvc                        NameID = 68
	IDContentSecurityPolicy         NameID = 69
	IDEarlyData                     NameID = 70
	IDExpectCT                      NameID = 71
	IDForwarded                     NameID = 72
	IDOrigin                        NameID = 73
	IDPurpose                       NameID = 74
	IDTimingAllowOrigin             NameID = 75
	IDUpgradeInsecureRequests       NameID = 76
	IDXContentTypeOptions           NameID = 77
	IDXForwardedFor                 NameID = 78
	IDXFrameOptions                 NameID = 79
	IDXXSSProtection                NameID = 80
)

// NameIDs is above all of them.
const NameIDs = 81

// wire is each NameID's name as HTTP/2 and HTTP/3 write it.
var wire = [NameIDs]string{
	IDAuthority:                     ":authority",
	IDMethod:                        ":method",
	IDPath:                          ":path",
	IDScheme:                        ":scheme",
	IDProtocol:                      ":protocol",
	IDStatus:                        ":status",
	IDAcceptCharset:                 "accept-charset",
	IDAcceptEncoding:                "accept-encoding",
	IDAcceptLanguage:                "accept-language",
	IDAcceptRanges:                  "accept-ranges",
	IDAccept:                        "accept",
	IDAccessControlAllowOrigin:      "access-control-allow-origin",
	IDAge:                           "age",
	IDAllow:                         "allow",
	IDAuthorization:                 "authorization",
	IDCacheControl:                  "cache-control",
	IDContentDisposition:            "content-disposition",
	IDContentEncoding:               "content-encoding",
	IDContentLanguage:               "content-language",
	IDContentLength:                 "content-length",
	IDContentLocation:               "content-location",
	IDContentRange:                  "content-range",
	IDContentType:                   "content-type",
	IDCookie:                        "cookie",
	IDDate:                          "date",
	IDETag:                          "etag",
	IDExpect:                        "expect",
	IDExpires:                       "expires",
	IDFrom:                          "from",
	IDHost:                          "host",
	IDIfMatch:                       "if-match",
	IDIfModifiedSince:               "if-modified-since",
	IDIfNoneMatch:                   "if-none-match",
	IDIfRange:                       "if-range",
	IDIfUnmodifiedSince:             "if-unmodified-since",
	IDLastModified:                  "last-modified",
	IDLink:                          "link",
	IDLocation:                      "location",
	IDMaxForwards:                   "max-forwards",
	IDProxyAuthenticate:             "proxy-authenticate",
	IDProxyAuthorization:            "proxy-authorization",
	IDRange:                         "range",
	IDReferer:                       "referer",
	IDRefresh:                       "refresh",
	IDRetryAfter:                    "retry-after",
	IDServer:                        "server",
	IDSetCookie:                     "set-cookie",
	IDStrictTransportSecurity:       "strict-transport-security",
	IDTransferEncoding:              "transfer-encoding",
	IDUserAgent:                     "user-agent",
	IDVary:                          "vary",
	IDVia:                           "via",
	IDWWWAuthenticate:               "www-authenticate",
	IDAccessControlAllowCredentials: "access-control-allow-credentials",
	IDAccessControlAllowHeaders:     "access-control-allow-headers",
	IDAccessControlAllowMethods:     "access-control-allow-methods",
	IDAccessControlExposeHeaders:    "access-control-expose-headers",
	IDAccessControlRequestHeaders:   "access-control-request-headers",
	IDAccessControlRequestMethod:    "access-control-request-method",
	IDAltSvc:                        "alt-svc",
	IDContentSecurityPolicy:         "content-security-policy",
	IDEarlyData:                     "early-data",
	IDExpectCT:                      "expect-ct",
	IDForwarded:                     "forwarded",
	IDOrigin:                        "origin",
	IDPurpose:                       "purpose",
	IDTimingAllowOrigin:             "timing-allow-origin",
	IDUpgradeInsecureRequests:       "upgrade-insecure-requests",
	IDXContentTypeOptions:           "x-content-type-options",
	IDXForwardedFor:                 "x-forwarded-for",
	IDXFrameOptions:                 "x-frame-options",
	IDXXSSProtection:                "x-xss-protection",
}

// canonical is each NameID's name as net/http writes it.
var canonical = func() (t [NameIDs]string) {
	for id := IDStatus + 1; id < NameIDs; id++ {
		t[id] = textproto.CanonicalMIMEHeaderKey(wire[id])
	}
	return t
}()

// Canonical is the name as net/http writes it, "" for pseudo-fields and for 0.
func (id NameID) Canonical() string { return canonical[id] }

// Name is the name as HTTP/2 and HTTP/3 write it, "" for 0.
func (id NameID) Name() string { return wire[id] }

// Lookup is the NameID of a canonical name (net/textproto), 0 for a pseudo-field.
func Lookup(name string) NameID {
	switch name {
	case "Accept-Charset":
		return IDAcceptCharset
	case "Accept-Encoding":
		return IDAcceptEncoding
	case "Accept-Language":
		return IDAcceptLanguage
	case "Accept-Ranges":
		return IDAcceptRanges
	case "Accept":
		return IDAccept
	case "Access-Control-Allow-Origin":
		return IDAccessControlAllowOrigin
	case "Age":
		return IDAge
	case "Allow":
		return IDAllow
	case "Authorization":
		return IDAuthorization
	case "Cache-Control":
		return IDCacheControl
	case "Content-Disposition":
		return IDContentDisposition
	case "Content-Encoding":
		return IDContentEncoding
	case "Content-Language":
		return IDContentLanguage
	case "Content-Length":
		return IDContentLength
	case "Content-Location":
		return IDContentLocation
	case "Content-Range":
		return IDContentRange
	case "Content-Type":
		return IDContentType
	case "Cookie":
		return IDCookie
	case "Date":
		return IDDate
	case "Etag":
		return IDETag
	case "Expect":
		return IDExpect
	case "Expires":
		return IDExpires
	case "From":
		return IDFrom
	case "Host":
		return IDHost
	case "If-Match":
		return IDIfMatch
	case "If-Modified-Since":
		return IDIfModifiedSince
	case "If-None-Match":
		return IDIfNoneMatch
	case "If-Range":
		return IDIfRange
	case "If-Unmodified-Since":
		return IDIfUnmodifiedSince
	case "Last-Modified":
		return IDLastModified
	case "Link":
		return IDLink
	case "Location":
		return IDLocation
	case "Max-Forwards":
		return IDMaxForwards
	case "Proxy-Authenticate":
		return IDProxyAuthenticate
	case "Proxy-Authorization":
		return IDProxyAuthorization
	case "Range":
		return IDRange
	case "Referer":
		return IDReferer
	case "Refresh":
		return IDRefresh
	case "Retry-After":
		return IDRetryAfter
	case "Server":
		return IDServer
	case "Set-Cookie":
		return IDSetCookie
	case "Strict-Transport-Security":
		return IDStrictTransportSecurity
	case "Transfer-Encoding":
		return IDTransferEncoding
	case "User-Agent":
		return IDUserAgent
	case "Vary":
		return IDVary
	case "Via":
		return IDVia
	case "Www-Authenticate":
		return IDWWWAuthenticate
	}
	return lookupRare(name)
}

// lookupRare is Lookup for the names that HPACK's table has not.
func lookupRare(name string) NameID {
	switch name {
	case "Access-Control-Allow-Credentials":
		return IDAccessControlAllowCredentials
	case "Access-Control-Allow-Headers":
		return IDAccessControlAllowHeaders
	case "Access-Control-Allow-Methods":
		return IDAccessControlAllowMethods
	case "Access-Control-Expose-Headers":
		return IDAccessControlExposeHeaders
	case "Access-Control-Request-Headers":
		return IDAccessControlRequestHeaders
	case "Access-Control-Request-Method":
		return IDAccessControlRequestMethod
	case "Alt-Svc":
		return IDAltSvc
	case "Content-Security-Policy":
		return IDContentSecurityPolicy
	case "Early-Data":
		return IDEarlyData
	case "Expect-Ct":
		return IDExpectCT
	case "Forwarded":
		return IDForwarded
	case "Origin":
		return IDOrigin
	case "Purpose":
		return IDPurpose
	case "Timing-Allow-Origin":
		return IDTimingAllowOrigin
	case "Upgrade-Insecure-Requests":
		return IDUpgradeInsecureRequests
	case "X-Content-Type-Options":
		return IDXContentTypeOptions
	case "X-Forwarded-For":
		return IDXForwardedFor
	case "X-Frame-Options":
		return IDXFrameOptions
	case "X-Xss-Protection":
		return IDXXSSProtection
	}
	return 0
}

// byWire are all of wire.
var byWire = func() map[string]NameID {
	m := make(map[string]NameID, NameIDs)
	for id, name := range wire {
		if name != "" {
			m[name] = NameID(id)
		}
	}
	return m
}()

// LookupWire is the NameID of a name as it is on the wire.
func LookupWire(name []byte) NameID { return byWire[string(name)] }

// LookupFold is the NameID of a name in any case.
func LookupFold(name string) NameID {
	if id := Lookup(name); id != 0 {
		return id
	}
	var few [32]byte
	if len(name) > len(few) {
		return 0
	}
	return LookupWire(lower(few[:0], name))
}
