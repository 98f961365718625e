// Package demo is what "chert demo" serves: a small service that shows the
// router, the middleware, limits, streams and files, and the curl lines to try
// it with.
//
// [New] makes the service, [Lines] the lines. Nothing it keeps is worth
// anything: uploads are counted and dropped, and its tokens, made anew at each
// start, are printed on its start page. It must not know flags, signals or
// listeners. Only cmd/chert may import it.
package demo
