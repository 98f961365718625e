package main

import "testing"

// What was read before a change is not kept after it.
func TestCacheVersion(t *testing.T) {
	c := newCache()
	before := c.version(7)
	c.invalidate(7)
	c.put(7, []byte("old"), before)
	if got := c.get(7); got != nil {
		t.Errorf("%q is kept", got)
	}
	c.put(7, []byte("new"), c.version(7))
	if got := c.get(7); string(got) != "new" {
		t.Errorf("%q", got)
	}
	c.invalidate(7)
	if got := c.get(7); got != nil {
		t.Errorf("%q after it was invalidated", got)
	}
}
