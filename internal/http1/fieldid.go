package http1

// FieldID names a field that is often seen, so that code can switch on it
// instead of comparing strings. 0 is any other field.
type FieldID uint8

// The fields up to FieldTrailer are those that finish examines; their bits fit
// a uint8.
const (
	FieldUnknown FieldID = iota
	FieldHost
	FieldContentLength
	FieldTransferEncoding
	FieldConnection
	FieldExpect
	FieldUpgrade
	FieldTrailer

	FieldAccept
	FieldAcceptCharset
	FieldAcceptEncoding
	FieldAcceptLanguage
	FieldAcceptRanges
	FieldAccessControlAllowCredentials
	FieldAccessControlAllowHeaders
	FieldAccessControlAllowMethods
	FieldAccessControlAllowOrigin
	FieldAccessControlExposeHeaders
	FieldAccessControlMaxAge
	FieldAccessControlRequestHeaders
	FieldAccessControlRequestMethod
	FieldAge
	FieldAllow
	FieldAltSvc
	FieldAuthorization
	FieldCacheControl
	FieldContentDisposition
	FieldContentEncoding
	FieldContentLanguage
	FieldContentLocation
	FieldContentRange
	FieldContentSecurityPolicy
	FieldContentType
	FieldCookie
	FieldDate
	FieldDNT
	FieldETag
	FieldExpires
	FieldForwarded
	FieldFrom
	FieldIfMatch
	FieldIfModifiedSince
	FieldIfNoneMatch
	FieldIfRange
	FieldIfUnmodifiedSince
	FieldKeepAlive
	FieldLastModified
	FieldLink
	FieldLocation
	FieldMaxForwards
	FieldOrigin
	FieldPragma
	FieldPriority
	FieldProxyAuthenticate
	FieldProxyAuthorization
	FieldProxyConnection
	FieldRange
	FieldReferer
	FieldReferrerPolicy
	FieldRetryAfter
	FieldSecCHUA
	FieldSecCHUAMobile
	FieldSecCHUAPlatform
	FieldSecFetchDest
	FieldSecFetchMode
	FieldSecFetchSite
	FieldSecFetchUser
	FieldSecGPC
	FieldSecWebSocketAccept
	FieldSecWebSocketExtensions
	FieldSecWebSocketKey
	FieldSecWebSocketProtocol
	FieldSecWebSocketVersion
	FieldServer
	FieldSetCookie
	FieldStrictTransportSecurity
	FieldTE
	FieldTraceparent
	FieldTracestate
	FieldUpgradeInsecureRequests
	FieldUserAgent
	FieldVary
	FieldVia
	FieldWWWAuthenticate
	FieldXContentTypeOptions
	FieldXForwardedFor
	FieldXForwardedHost
	FieldXForwardedProto
	FieldXFrameOptions
	FieldXRealIP
	FieldXRequestID
	FieldXRequestedWith

	fieldCount
)

// fieldNames has the canonical MIME form of each.
var fieldNames = [fieldCount]string{
	FieldHost:                          "Host",
	FieldContentLength:                 "Content-Length",
	FieldTransferEncoding:              "Transfer-Encoding",
	FieldConnection:                    "Connection",
	FieldExpect:                        "Expect",
	FieldUpgrade:                       "Upgrade",
	FieldTrailer:                       "Trailer",
	FieldAccept:                        "Accept",
	FieldAcceptCharset:                 "Accept-Charset",
	FieldAcceptEncoding:                "Accept-Encoding",
	FieldAcceptLanguage:                "Accept-Language",
	FieldAcceptRanges:                  "Accept-Ranges",
	FieldAccessControlAllowCredentials: "Access-Control-Allow-Credentials",
	FieldAccessControlAllowHeaders:     "Access-Control-Allow-Headers",
	FieldAccessControlAllowMethods:     "Access-Control-Allow-Methods",
	FieldAccessControlAllowOrigin:      "Access-Control-Allow-Origin",
	FieldAccessControlExposeHeaders:    "Access-Control-Expose-Headers",
	FieldAccessControlMaxAge:           "Access-Control-Max-Age",
	FieldAccessControlRequestHeaders:   "Access-Control-Request-Headers",
	FieldAccessControlRequestMethod:    "Access-Control-Request-Method",
	FieldAge:                           "Age",
	FieldAllow:                         "Allow",
	FieldAltSvc:                        "Alt-Svc",
	FieldAuthorization:                 "Authorization",
	FieldCacheControl:                  "Cache-Control",
	FieldContentDisposition:            "Content-Disposition",
	FieldContentEncoding:               "Content-Encoding",
	FieldContentLanguage:               "Content-Language",
	FieldContentLocation:               "Content-Location",
	FieldContentRange:                  "Content-Range",
	FieldContentSecurityPolicy:         "Content-Security-Policy",
	FieldContentType:                   "Content-Type",
	FieldCookie:                        "Cookie",
	FieldDate:                          "Date",
	FieldDNT:                           "Dnt",
	FieldETag:                          "Etag",
	FieldExpires:                       "Expires",
	FieldForwarded:                     "Forwarded",
	FieldFrom:                          "From",
	FieldIfMatch:                       "If-Match",
	FieldIfModifiedSince:               "If-Modified-Since",
	FieldIfNoneMatch:                   "If-None-Match",
	FieldIfRange:                       "If-Range",
	FieldIfUnmodifiedSince:             "If-Unmodified-Since",
	FieldKeepAlive:                     "Keep-Alive",
	FieldLastModified:                  "Last-Modified",
	FieldLink:                          "Link",
	FieldLocation:                      "Location",
	FieldMaxForwards:                   "Max-Forwards",
	FieldOrigin:                        "Origin",
	FieldPragma:                        "Pragma",
	FieldPriority:                      "Priority",
	FieldProxyAuthenticate:             "Proxy-Authenticate",
	FieldProxyAuthorization:            "Proxy-Authorization",
	FieldProxyConnection:               "Proxy-Connection",
	FieldRange:                         "Range",
	FieldReferer:                       "Referer",
	FieldReferrerPolicy:                "Referrer-Policy",
	FieldRetryAfter:                    "Retry-After",
	FieldSecCHUA:                       "Sec-Ch-Ua",
	FieldSecCHUAMobile:                 "Sec-Ch-Ua-Mobile",
	FieldSecCHUAPlatform:               "Sec-Ch-Ua-Platform",
	FieldSecFetchDest:                  "Sec-Fetch-Dest",
	FieldSecFetchMode:                  "Sec-Fetch-Mode",
	FieldSecFetchSite:                  "Sec-Fetch-Site",
	FieldSecFetchUser:                  "Sec-Fetch-User",
	FieldSecGPC:                        "Sec-Gpc",
	FieldSecWebSocketAccept:            "Sec-Websocket-Accept",
	FieldSecWebSocketExtensions:        "Sec-Websocket-Extensions",
	FieldSecWebSocketKey:               "Sec-Websocket-Key",
	FieldSecWebSocketProtocol:          "Sec-Websocket-Protocol",
	FieldSecWebSocketVersion:           "Sec-Websocket-Version",
	FieldServer:                        "Server",
	FieldSetCookie:                     "Set-Cookie",
	FieldStrictTransportSecurity:       "Strict-Transport-Security",
	FieldTE:                            "Te",
	FieldTraceparent:                   "Traceparent",
	FieldTracestate:                    "Tracestate",
	FieldUpgradeInsecureRequests:       "Upgrade-Insecure-Requests",
	FieldUserAgent:                     "User-Agent",
	FieldVary:                          "Vary",
	FieldVia:                           "Via",
	FieldWWWAuthenticate:               "Www-Authenticate",
	FieldXContentTypeOptions:           "X-Content-Type-Options",
	FieldXForwardedFor:                 "X-Forwarded-For",
	FieldXForwardedHost:                "X-Forwarded-Host",
	FieldXForwardedProto:               "X-Forwarded-Proto",
	FieldXFrameOptions:                 "X-Frame-Options",
	FieldXRealIP:                       "X-Real-Ip",
	FieldXRequestID:                    "X-Request-Id",
	FieldXRequestedWith:                "X-Requested-With",
}
