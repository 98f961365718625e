// Package forwardauth provides middleware that asks another server whether to admit a
// request: Authelia, authentik, oauth2-proxy and others that speak the same convention.
//
//	f, err := forwardauth.New(&forwardauth.Options{
//		URL:     "http://127.0.0.1:9091/api/authz/forward-auth",
//		Headers: []string{"Remote-User", "Remote-Groups"},
//	})
//	defer f.Close()
//	h = f.Wrap(h)
package forwardauth

// It must not depend on servers: the subrequest is one of net/http's client.
