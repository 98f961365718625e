package main

import (
	"runtime/debug"
	"strings"
)

// version describes this build: "v1.2.3 (go1.26.0, revision 0123456789ab)".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return describe(info)
}

// describe leaves out what the build did not record, as `go build -buildvcs=false` and `go install` from a module
// proxy do with the revision.
func describe(info *debug.BuildInfo) string {
	name := info.Main.Version
	if name == "" || name == "(devel)" {
		name = "devel"
	}
	detail := []string{info.GoVersion}
	set := make(map[string]string, len(info.Settings))
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	if rev := set["vcs.revision"]; rev != "" {
		if len(rev) > 12 {
			rev = rev[:12]
		}
		detail = append(detail, "revision "+rev)
		if set["vcs.modified"] == "true" {
			detail = append(detail, "modified")
		}
	}
	return name + " (" + strings.Join(detail, ", ") + ")"
}
