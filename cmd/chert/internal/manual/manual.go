package manual

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Pages returns a page for root and for each subcommand that is not hidden, by file name, such as "chert-serve.1".
// version is printed at the foot of each.
func Pages(root *cobra.Command, version string) map[string][]byte {
	root.InitDefaultHelpFlag()
	root.InitDefaultHelpCmd()
	pages := map[string][]byte{}
	add(pages, root, version)
	return pages
}

func add(pages map[string][]byte, cmd *cobra.Command, version string) {
	cmd.InitDefaultHelpFlag()
	pages[name(cmd)+".1"] = page(cmd, version)
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			add(pages, sub, version)
		}
	}
}

// name is the name of the page of a command: that of git-commit(1) for "git commit".
func name(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page writes the sections in the order of man-pages(7).
func page(cmd *cobra.Command, version string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s\" \"User Commands\"\n", escape(strings.ToUpper(name(cmd))), escape(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(name(cmd)), escape(lowerFirst(cmd.Short)))
	b.WriteString(".SH SYNOPSIS\n")
	if cmd.Runnable() && cmd.HasParent() {
		fmt.Fprintf(&b, ".B %s\n", escape(useLine(cmd)))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, ".B %s\n.I command\n[\\fIoptions\\fR]\n", escape(cmd.CommandPath()))
	}
	if cmd.Long != "" {
		b.WriteString(".SH DESCRIPTION\n")
		text(&b, cmd.Long)
	}
	commands(&b, cmd)
	options(&b, cmd)
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		text(&b, cmd.Example)
	}
	b.WriteString(".SH EXIT STATUS\n0 after success, 1 after a failure, 2 for a wrong command line.\n")
	seeAlso(&b, cmd)
	return b.Bytes()
}

func useLine(cmd *cobra.Command) string {
	line := cmd.UseLine()
	if cmd.HasAvailableFlags() && !strings.Contains(line, "[flags]") {
		line += " [flags]"
	}
	return line
}

// commands lists the subcommands.
func commands(b *bytes.Buffer, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	b.WriteString(".SH COMMANDS\n")
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(b, ".TP\n\\fB%s\\fR(1)\n%s.\n", escape(name(sub)), escape(sub.Short))
		}
	}
}

// options lists the flags in the order of their help.
func options(b *bytes.Buffer, cmd *cobra.Command) {
	if !cmd.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH OPTIONS\n")
	cmd.Flags().SortFlags = cmd.LocalFlags().SortFlags
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(b, "\\fB%s\\fR, ", escape("-"+f.Shorthand))
		}
		fmt.Fprintf(b, "\\fB%s\\fR", escape("--"+f.Name))
		switch {
		case f.NoOptDefVal != "" && f.Value.Type() != "bool":
			fmt.Fprintf(b, "[=\\fI%s\\fR]", escape(kind))
		case kind != "":
			fmt.Fprintf(b, " \\fI%s\\fR", escape(kind))
		}
		fmt.Fprintf(b, "\n%s", line(strings.Join(strings.Fields(usage), " ")))
		switch f.DefValue {
		case "", "false", "[]", "0":
		default:
			fmt.Fprintf(b, " (default %s)", escape(f.DefValue))
		}
		b.WriteByte('\n')
	})
}

// seeAlso names the page of the command above; that lists the others.
func seeAlso(b *bytes.Buffer, cmd *cobra.Command) {
	if parent := cmd.Parent(); parent != nil {
		fmt.Fprintf(b, ".SH SEE ALSO\n\\fB%s\\fR(1)\n", escape(name(parent)))
	}
}

// text writes the paragraphs of a help text: lines that are indented are kept as they are, the others are filled.
func text(b *bytes.Buffer, s string) {
	verbatim := false
	for l := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
		indented := strings.HasPrefix(l, " ") || strings.HasPrefix(l, "\t")
		switch {
		case strings.TrimSpace(l) == "" && verbatim:
			b.WriteByte('\n')
			continue
		case strings.TrimSpace(l) == "":
			b.WriteString(".PP\n")
			continue
		case indented && !verbatim:
			b.WriteString(".nf\n")
		case !indented && verbatim:
			b.WriteString(".fi\n.PP\n")
		}
		verbatim = indented
		b.WriteString(line(l))
		b.WriteByte('\n')
	}
	if verbatim {
		b.WriteString(".fi\n")
	}
}

// line escapes a whole line of input: a period or an apostrophe at its beginning would make it a request.
func line(s string) string {
	s = escape(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") || strings.HasPrefix(s, `\(aq`) {
		s = `\&` + s
	}
	return s
}

var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

// escape keeps the characters of commands as they are typed: roff would print others in their place.
func escape(s string) string { return escapes.Replace(s) }

// lowerFirst makes a sentence a phrase, as whatis(1) shows it; not if it begins with a word in capitals.
func lowerFirst(s string) string {
	if len(s) > 1 && s[1] >= 'a' && s[1] <= 'z' {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return strings.Replace(s, "An HTTP", "an HTTP", 1)
}
