module github.com/chert-http/chert/internal/proxyproto/oracletest

go 1.26.0

require (
	github.com/chert-http/chert v0.0.0
	github.com/pires/go-proxyproto v0.15.0
)

replace github.com/chert-http/chert => ../../..
