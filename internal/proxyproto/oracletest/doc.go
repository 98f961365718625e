// Package oracletest compares package proxyproto with github.com/pires/go-proxyproto. It
// is a module of its own, so that chert's does not need that one.
package oracletest
