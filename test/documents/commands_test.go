package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	comment     = regexp.MustCompile(` {2,}.*$`)
	assignments = regexp.MustCompile(`^([A-Z_]+=\S+ )+`)
	inline      = regexp.MustCompile("`((?:chert|make) [^`\n]+)`")
	words       = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
)

// commandsOf returns the commands of a block of indented lines.
func commandsOf(b block) (commands []string) {
	text := strings.ReplaceAll(b.text, "\\\n", "")
	for line := range strings.Lines(text) {
		line = comment.ReplaceAllString(strings.TrimSpace(line), "")
		for c := range strings.SplitSeq(line, " && ") {
			if c = assignments.ReplaceAllString(c, ""); c != "" {
				commands = append(commands, c)
			}
		}
	}
	return commands
}

// argumentsOf returns the words of a command to the first redirection or pipe.
func argumentsOf(command string) (args []string) {
	for _, w := range words.FindAllString(command, -1) {
		if w == "|" || w == "&" || w[0] == '>' || w[0] == '<' {
			break
		}
		args = append(args, strings.Trim(w, `'"`))
	}
	return args
}

// checkCommand returns what is wrong with a command, or "".
func checkCommand(t *testing.T, command string) string {
	t.Helper()
	args := argumentsOf(command)
	switch args[0] {
	case "chert":
		return checkFlags(t, args[1:])
	case "make":
		text, err := os.ReadFile(filepath.Join(checkout, "Makefile"))
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range args[1:] {
			if !strings.Contains(target, "=") && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(target)+`:`).Match(text) {
				return "no target " + target
			}
		}
	case "go":
		dir := checkout
		if i := slices.Index(args, "-C"); i > 0 && i+1 < len(args) {
			dir = filepath.Join(checkout, args[i+1])
		}
		for _, a := range append([]string{"."}, args[1:]...) {
			if a == "." || strings.HasPrefix(a, "./") {
				if _, err := os.Stat(filepath.Join(dir, strings.TrimSuffix(a, "/..."))); err != nil {
					return err.Error()
				}
			}
		}
	case "kill":
		if !regexp.MustCompile(`^kill -(HUP|USR1|USR2|TERM|INT) PID$`).MatchString(command) {
			return "want kill -SIGNAL PID"
		}
	default:
		return "nothing checks " + args[0] + ": say why in <!-- skip: -->"
	}
	return ""
}

// checkFlags parses the flags: --help after them ends the command before it begins.
func checkFlags(t *testing.T, args []string) string {
	t.Helper()
	if len(args) == 0 {
		return ""
	}
	stdout, stderr, code := chert(t, t.TempDir(), append(args, "--help")...)
	if code != 0 {
		return strings.TrimSpace(stderr)
	}
	if !strings.Contains(stdout, "chert "+args[0]+" ") {
		return "no command " + args[0]
	}
	return ""
}

// The commands of all pages are known, with their flags.
func TestCommands(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, b := range blocksOf(t, page) {
			if _, skipped := b.markers["skip"]; skipped || b.language != "indented" {
				continue
			}
			for _, c := range commandsOf(b) {
				if why := checkCommand(t, c); why != "" {
					t.Errorf("%s:%d: %s: %s", page, b.line, c, why)
				}
			}
		}
		text, err := os.ReadFile(filepath.Join(checkout, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inline.FindAllStringSubmatch(string(text), -1) {
			for c := range strings.SplitSeq(m[1], " && ") {
				if !strings.HasPrefix(c, "chert ") && !strings.HasPrefix(c, "make ") {
					continue
				}
				// In prose a flag that has a value is named without one.
				if why := checkCommand(t, c); strings.Contains(why, "unknown") || strings.HasPrefix(why, "no ") {
					t.Errorf("%s: `%s`: %s", page, c, why)
				}
			}
		}
	}
}
