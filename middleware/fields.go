package middleware

import "net/http"

// plainHeader is an http.Header for names in canonical form. The methods of
// http.Header check every letter of a name in every call.
type plainHeader http.Header

func (h plainHeader) Get(name string) string      { return first(h[name]) }
func (h plainHeader) Values(name string) []string { return h[name] }
func (h plainHeader) Set(name, value string)      { h[name] = []string{value} }
func (h plainHeader) Add(name, value string)      { h[name] = append(h[name], value) }
func (h plainHeader) Del(name string)             { delete(h, name) }
