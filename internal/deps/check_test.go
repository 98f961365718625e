package deps

import (
	"fmt"
	"slices"
	"strings"
)

// module is the import path of the root; TestModulePath holds it to go.mod.
const module = "github.com/chert-http/chert"

type rule struct {
	pkg   string
	may   string // of this module, separated by spaces
	other string // of other modules, likewise
}

// imp is one import statement of a file that is not a test.
type imp struct {
	from string // folder of the importing package
	path string
	at   string // file:line
}

// covers reports whether a name of the table stands for the folder.
func covers(name, folder string) bool {
	if name == "..." {
		return true
	}
	if tree, ok := strings.CutSuffix(name, "/..."); ok {
		return within(tree, folder)
	}
	return name == folder
}

// within reports whether path is tree or lies below it.
func within(tree, path string) bool {
	return path == tree || strings.HasPrefix(path, tree+"/")
}

// isStd follows the go command: the first element of a path outside std has a
// dot. "C" is not std: cgo would need a line of its own.
func isStd(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return path != "C" && !strings.Contains(first, ".")
}

func ruleFor(policy []rule, folder string) (rule, bool) {
	i := slices.IndexFunc(policy, func(r rule) bool { return covers(r.pkg, folder) })
	if i < 0 {
		return rule{}, false
	}
	return policy[i], true
}

// checkKnown returns a fault for each folder that has no line in the policy.
func checkKnown(policy []rule, folders []string) (faults []string) {
	for _, f := range folders {
		if _, ok := ruleFor(policy, f); !ok {
			faults = append(faults, fmt.Sprintf("package %s is not in the policy: add a line for it to the table "+
				"in internal/deps/policy_test.go, with no more than the design lets it import", f))
		}
	}
	return faults
}

// checkImports returns a fault for each import that the policy does not allow.
// Folders without a line are left to checkKnown.
func checkImports(policy []rule, imports []imp) (faults []string) {
	for _, im := range imports {
		r, ok := ruleFor(policy, im.from)
		if !ok || isStd(im.path) {
			continue
		}
		if fault := checkImport(r, im); fault != "" {
			faults = append(faults, fmt.Sprintf("%s: %s %s", im.at, im.from, fault))
		}
	}
	return faults
}

func checkImport(r rule, im imp) string {
	for tree, home := range confined {
		if within(tree, im.path) && im.from != home && !within("internal/testing", im.from) {
			return fmt.Sprintf("imports %s, which only %s may import", im.path, home)
		}
	}
	if !within(module, im.path) {
		if slices.ContainsFunc(strings.Fields(r.other), func(t string) bool { return within(t, im.path) }) {
			return ""
		}
		return fmt.Sprintf("may not import %s; of other modules it may import: %s", im.path, orNothing(r.other))
	}
	target := folderOf(im.path)
	if slices.ContainsFunc(strings.Fields(r.may), func(name string) bool { return covers(name, target) }) {
		return ""
	}
	return fmt.Sprintf("may not import %s; of this module it may import: %s", target, orNothing(r.may))
}

// folderOf returns the folder of an import path of this module.
func folderOf(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// checkPolicy returns the mistakes in the table itself: a line that lists a
// package of no line above it, a package listed twice, and a foreign module in
// the core that core does not name.
func checkPolicy(policy []rule, core []string) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for i, r := range policy {
		if prior, ok := ruleFor(policy[:i], strings.TrimSuffix(r.pkg, "/...")); ok {
			fault("%s has a line already: %s", r.pkg, prior.pkg)
		}
		for _, name := range strings.Fields(r.may) {
			if name == "..." {
				continue // the whole module includes everything below
			}
			if _, ok := ruleFor(policy[:i], name); !ok {
				fault("%s may import %s, which has no line above it", r.pkg, name)
			}
		}
	}
	for _, name := range reach(policy, ".") {
		r, _ := ruleFor(policy, name)
		for _, path := range strings.Fields(r.other) {
			if !slices.Contains(core, path) {
				fault("%s is in the core and may import %s, which the core may not", name, path)
			}
		}
	}
	return faults
}

// reach returns the packages that the policy lets pkg import, directly or
// through others, and pkg.
func reach(policy []rule, pkg string) []string {
	seen := []string{pkg}
	for i := 0; i < len(seen); i++ {
		r, _ := ruleFor(policy, seen[i])
		for _, name := range strings.Fields(r.may) {
			if !slices.Contains(seen, name) {
				seen = append(seen, name)
			}
		}
	}
	return seen
}
