package main

import (
	"cmp"
	"slices"
	"strings"
)

// differing is a test that net/http passes and chert does not.
type differing struct {
	id
	result     // on chert
	difference // zero if nothing explains it
}

// count counts the tests and subtests of a state; of any if it is empty.
func (r *results) count(state string) (n int) {
	for at, res := range r.tests {
		if at.test != "" && (state == "" || res.state == state) {
			n++
		}
	}
	return n
}

// served counts the tests and subtests whose function, or method, created a chert server.
func (r *results) served() (n int) {
	for at := range r.tests {
		name := ""
		for part := range strings.SplitSeq(at.test, "/") {
			if name += part; part != "" && r.onChert[id{at.pkg, name}] {
				n++
				break
			}
			name += "/"
		}
	}
	return n
}

// failed lists what failed, innermost tests only.
func (r *results) failed() (list []id) {
	for at, res := range r.tests {
		if res.state == "fail" {
			list = append(list, at)
		}
	}
	return innermost(list, func(at id) id { return at })
}

// compare lists the tests that pass on plain and do not on chert, for any
// reason: failed, skipped, or not run at all. Of a test and its subtests only
// the innermost are listed, and of a package only its tests, since the
// enclosing ones fail with them.
func compare(suite string, plain, chert *results) []differing {
	var list []differing
	add := func(at id, res *result) {
		d, _ := explain(suite, at.test)
		list = append(list, differing{at, *res, d})
	}
	for at, res := range plain.tests {
		switch got := chert.tests[at]; {
		case res.state != "pass":
		case got == nil:
			add(at, &result{state: "not run"})
		case got.state == "":
			add(at, &result{state: "not ended", output: got.output})
		case got.state != "pass":
			add(at, got)
		}
	}
	for at, res := range chert.tests {
		if plain.tests[at] == nil && res.state == "fail" {
			add(at, res)
		}
	}
	return innermost(list, func(d differing) id { return d.id })
}

// innermost sorts a list and drops what holds another of it.
func innermost[T any](list []T, at func(T) id) []T {
	holder := make(map[id]bool)
	for _, x := range list {
		i := at(x)
		if i.test != "" {
			holder[id{i.pkg, ""}] = true
		}
		for s := strings.LastIndexByte(i.test, '/'); s >= 0; s = strings.LastIndexByte(i.test[:s], '/') {
			holder[id{i.pkg, i.test[:s]}] = true
		}
	}
	list = slices.DeleteFunc(list, func(x T) bool { return holder[at(x)] })
	slices.SortFunc(list, func(x, y T) int {
		return cmp.Or(strings.Compare(at(x).pkg, at(y).pkg), strings.Compare(at(x).test, at(y).test))
	})
	return list
}

// stale lists the lines of the table that explain nothing: no such test exists,
// or it passes on every engine.
func stale(suite string, plain *results, runs []*results) (list []difference) {
	for _, d := range differences {
		if d.suite != suite {
			continue
		}
		covers := func(at id) bool {
			e, ok := explain(suite, at.test)
			return ok && e == d
		}
		exists, needed := false, false
		for at := range plain.tests {
			exists = exists || covers(at)
		}
		for _, r := range runs {
			for at, res := range r.tests {
				needed = needed || covers(at) && res.state != "pass"
			}
		}
		if !exists || !needed {
			list = append(list, d)
		}
	}
	return list
}
