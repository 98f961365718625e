package main

import (
	"testing"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/middleware"
)

// A path is reserved by a route with other rules about who may have it, and by no other.
func TestReserved(t *testing.T) {
	t.Parallel()
	guarded := config.Policy{Access: new(middleware.IPFilterOptions)}
	shown := config.Policy{Headers: map[string]string{"X-A": "1"}}
	for _, c := range []struct {
		folder, route string
		methods       []string
		policy        config.Policy
		path          string
		want          bool
	}{
		{"/", "/admin/{path...}", nil, guarded, "/admin/f", true},
		{"/", "/admin/{path...}", nil, guarded, "admin", true},
		{"/", "/admin/{path...}", nil, guarded, "/admin/", true},
		{"/", "/admin/{path...}", nil, guarded, "/administrator", false},
		{"/", "/admin/", nil, guarded, "/admin/a/b", true},
		{"/", "/user/{id}", nil, guarded, "/user/7", true},
		{"/", "/user/{id}", nil, guarded, "/user/7/f", false},
		{"/", "/user/{id}/f", nil, guarded, "/user/7/f", true},
		{"/", "/a%20b", nil, guarded, "/a b", true},
		{"/", "/{$}", nil, guarded, "/", true},
		{"/", "/{$}", nil, guarded, "/f", false},
		{"/img/{path...}", "/img/own/{path...}", nil, guarded, "/own/f", true},
		{"/img/{path...}", "/own/{path...}", nil, guarded, "/own/f", false},
		{"/{a}/{path...}", "/img/own", nil, guarded, "/own", false}, // it is that of every other /{a}/own too
		{"/{a}/{path...}", "/img/{path...}", nil, guarded, "/own", false},
		{"/{a}/{path...}", "/{b}/own", nil, guarded, "/own", true},
		{"/", "/admin/f", nil, guarded, "/admin/f/", false},
		{"/", "/admin", nil, guarded, "/admin/", false},
		{"/", "/admin/{$}", nil, guarded, "/admin/", true},
		{"/", "/admin/{$}", nil, guarded, "/admin", true},
		{"/", "/admin/{$}", nil, guarded, "/admin/f", false},
		{"/", "/f", []string{"POST"}, guarded, "/f", false},
		{"/", "/f", []string{"HEAD"}, guarded, "/f", false}, // what it refuses, GET has
		{"/", "/f", []string{"GET"}, guarded, "/f", true},
		{"/", "/f", []string{"POST", "GET"}, guarded, "/f", true},
		{"/", "/f", nil, shown, "/f", false},
		{"/", "/f", nil, config.Policy{}, "/f", false},
	} {
		route := config.Route{Path: c.route, Methods: c.methods, Policy: c.policy}
		all := reservedIn(c.folder, config.Policy{}, []config.Route{route})
		if got := all.has(c.path); got != c.want {
			t.Errorf("%q beside the folder of %q: has(%q) = %v, want %v", c.route, c.folder, c.path, got, c.want)
		}
	}
}
