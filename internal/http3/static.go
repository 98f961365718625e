package http3

import "github.com/chert-http/chert/internal/pack"

// static is the static table of RFC 9204 appendix A.
var static = [99]struct {
	id    pack.NameID
	value string
}{
	0:  {pack.IDAuthority, ""},
	1:  {pack.IDPath, "/"},
	2:  {pack.IDAge, "0"},
	3:  {pack.IDContentDisposition, ""},
	4:  {pack.IDContentLength, "0"},
	5:  {pack.IDCookie, ""},
	6:  {pack.IDDate, ""},
	7:  {pack.IDETag, ""},
	8:  {pack.IDIfModifiedSince, ""},
	9:  {pack.IDIfNoneMatch, ""},
	10: {pack.IDLastModified, ""},
	11: {pack.IDLink, ""},
	12: {pack.IDLocation, ""},
	13: {pack.IDReferer, ""},
	14: {pack.IDSetCookie, ""},
	15: {pack.IDMethod, "CONNECT"},
	16: {pack.IDMethod, "DELETE"},
	17: {pack.IDMethod, "GET"},
	18: {pack.IDMethod, "HEAD"},
	19: {pack.IDMethod, "OPTIONS"},
	20: {pack.IDMethod, "POST"},
	21: {pack.IDMethod, "PUT"},
	22: {pack.IDScheme, "http"},
	23: {pack.IDScheme, "https"},
	24: {pack.IDStatus, "103"},
	25: {pack.IDStatus, "200"},
	26: {pack.IDStatus, "304"},
	27: {pack.IDStatus, "404"},
	28: {pack.IDStatus, "503"},
	29: {pack.IDAccept, "*/*"},
	30: {pack.IDAccept, "application/dns-message"},
	31: {pack.IDAcceptEncoding, "gzip, deflate, br"},
	32: {pack.IDAcceptRanges, "bytes"},
	33: {pack.IDAccessControlAllowHeaders, "cache-control"},
	34: {pack.IDAccessControlAllowHeaders, "content-type"},
	35: {pack.IDAccessControlAllowOrigin, "*"},
	36: {pack.IDCacheControl, "max-age=0"},
	37: {pack.IDCacheControl, "max-age=2592000"},
	38: {pack.IDCacheControl, "max-age=604800"},
	39: {pack.IDCacheControl, "no-cache"},
	40: {pack.IDCacheControl, "no-store"},
	41: {pack.IDCacheControl, "public, max-age=31536000"},
	42: {pack.IDContentEncoding, "br"},
	43: {pack.IDContentEncoding, "gzip"},
	44: {pack.IDContentType, "application/dns-message"},
	45: {pack.IDContentType, "application/javascript"},
	46: {pack.IDContentType, "application/json"},
	47: {pack.IDContentType, "application/x-www-form-urlencoded"},
	48: {pack.IDContentType, "image/gif"},
	49: {pack.IDContentType, "image/jpeg"},
	50: {pack.IDContentType, "image/png"},
	51: {pack.IDContentType, "text/css"},
	52: {pack.IDContentType, "text/html; charset=utf-8"},
	53: {pack.IDContentType, "text/plain"},
	54: {pack.IDContentType, "text/plain;charset=utf-8"},
	55: {pack.IDRange, "bytes=0-"},
	56: {pack.IDStrictTransportSecurity, "max-age=31536000"},
	57: {pack.IDStrictTransportSecurity, "max-age=31536000; includesubdomains"},
	58: {pack.IDStrictTransportSecurity, "max-age=31536000; includesubdomains; preload"},
	59: {pack.IDVary, "accept-encoding"},
	60: {pack.IDVary, "origin"},
	61: {pack.IDXContentTypeOptions, "nosniff"},
	62: {pack.IDXXSSProtection, "1; mode=block"},
	63: {pack.IDStatus, "100"},
	64: {pack.IDStatus, "204"},
	65: {pack.IDStatus, "206"},
	66: {pack.IDStatus, "302"},
	67: {pack.IDStatus, "400"},
	68: {pack.IDStatus, "403"},
	69: {pack.IDStatus, "421"},
	70: {pack.IDStatus, "425"},
	71: {pack.IDStatus, "500"},
	72: {pack.IDAcceptLanguage, ""},
	73: {pack.IDAccessControlAllowCredentials, "FALSE"},
	74: {pack.IDAccessControlAllowCredentials, "TRUE"},
	75: {pack.IDAccessControlAllowHeaders, "*"},
	76: {pack.IDAccessControlAllowMethods, "get"},
	77: {pack.IDAccessControlAllowMethods, "get, post, options"},
	78: {pack.IDAccessControlAllowMethods, "options"},
	79: {pack.IDAccessControlExposeHeaders, "content-length"},
	80: {pack.IDAccessControlRequestHeaders, "content-type"},
	81: {pack.IDAccessControlRequestMethod, "get"},
	82: {pack.IDAccessControlRequestMethod, "post"},
	83: {pack.IDAltSvc, "clear"},
	84: {pack.IDAuthorization, ""},
	85: {pack.IDContentSecurityPolicy, "script-src 'none'; object-src 'none'; base-uri 'none'"},
	86: {pack.IDEarlyData, "1"},
	87: {pack.IDExpectCT, ""},
	88: {pack.IDForwarded, ""},
	89: {pack.IDIfRange, ""},
	90: {pack.IDOrigin, ""},
	91: {pack.IDPurpose, "prefetch"},
	92: {pack.IDServer, ""},
	93: {pack.IDTimingAllowOrigin, "*"},
	94: {pack.IDUpgradeInsecureRequests, "1"},
	95: {pack.IDUserAgent, ""},
	96: {pack.IDXForwardedFor, ""},
	97: {pack.IDXFrameOptions, "deny"},
	98: {pack.IDXFrameOptions, "sameorigin"},
}

// byName are the indices of static, those of a name beside each other, and nameAt is where
// those of a NameID begin and end.
var (
	byName [len(static)]uint8
	nameAt [pack.NameIDs]struct{ from, to uint8 }
)

func init() {
	n := uint8(0)
	for id := range nameAt {
		nameAt[id].from = n
		for i := range static {
			if static[i].id == pack.NameID(id) {
				byName[n] = uint8(i)
				n++
			}
		}
		nameAt[id].to = n
	}
}

// indices are those of the fields in static that have a name, none for most of HPACK's own.
func indices(id pack.NameID) []uint8 { return byName[nameAt[id].from:nameAt[id].to] }
