package adapt

import (
	"regexp"
	"strings"
)

// Variables of the environment are {$NAME} and {$NAME:default} in a Caddyfile, and ${NAME} and ${NAME:-default} in what
// becomes of it. In between they have private characters in place of braces, which would be read as those of {host}.
var (
	variable = regexp.MustCompile(`\{\$([a-zA-Z_][a-zA-Z0-9_]*)(?:(:)([^{}$]*))?\}`)
	marked   = regexp.MustCompile("\ue000([a-zA-Z_][a-zA-Z0-9_]*)(?:(\ue001)([^\ue000-\ue002]*))?\ue002")
)

// withVariables marks the variables in words.
func withVariables(all []directive) []directive {
	for i := range all {
		for j, w := range all[i].words {
			all[i].words[j] = variable.ReplaceAllStringFunc(w, func(text string) string {
				text = strings.Replace(strings.Trim(text, "{}$"), ":", "\ue001", 1)
				return "\ue000" + text + "\ue002"
			})
		}
		withVariables(all[i].block)
	}
	return all
}

func hasVariable(s string) bool { return strings.Contains(s, "\ue000") }

// isVariable reports whether a word is nothing but a variable.
func isVariable(s string) bool { return marked.FindString(s) == s && s != "" }

// unmarked replaces the marks by what they stand for in a Caddyfile.
func unmarked(s string) string {
	return marked.ReplaceAllStringFunc(s, func(text string) string {
		return strings.NewReplacer("\ue000", "{$", "\ue001", ":", "\ue002", "}").Replace(text)
	})
}
