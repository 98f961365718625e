package config

import (
	"fmt"
	"os"
	"strings"
)

// expand replaces ${NAME} and ${NAME:-default} in all strings of a value by variables of
// the environment. A dollar that no brace follows is kept, as bcrypt's hashes have them;
// "$${" is "${". What is filled in is not expanded again.
func (d *doc) expand(v any, at *spot) any {
	switch v := v.(type) {
	case string:
		s, err := expandString(v)
		if err != nil {
			d.errorf(at.value, "%v", err)
		}
		return s
	case []any:
		for i := range v {
			item := at
			if i < len(at.items) {
				item = at.items[i]
			}
			v[i] = d.expand(v[i], item)
		}
	case map[string]any:
		for key := range v {
			v[key] = d.expand(v[key], at.child(key))
		}
	}
	return v
}

func expandString(s string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		if !found {
			b.WriteString(s)
			return b.String(), nil
		}
		if literal, ok := strings.CutSuffix(before, "$"); ok {
			b.WriteString(literal + "${")
			s = rest
			continue
		}
		inside, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fmt.Errorf(`"${" without "}"; write "$${" for the two characters themselves`)
		}
		value, err := variable(inside)
		if err != nil {
			return "", err
		}
		b.WriteString(before + value)
		s = after
	}
}

// variable returns the value of NAME or NAME:-default. The default is for an empty
// variable too, as in a shell.
func variable(inside string) (string, error) {
	name, def, hasDefault := strings.Cut(inside, ":-")
	if !isVariable(name) {
		return "", fmt.Errorf(`%q is no name of a variable; want "${NAME}" or "${NAME:-default}", and "$${" for the `+
			`two characters themselves`, name)
	}
	value, ok := os.LookupEnv(name)
	switch {
	case hasDefault && value == "":
		return def, nil
	case !ok:
		return "", fmt.Errorf("the environment has no variable %s; ${%s:-default} gives it a default", name, name)
	}
	return value, nil
}

func isVariable(s string) bool {
	for i, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
