package manual

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// What roff would take for a request or for other characters is printed as it is.
func TestPages(t *testing.T) {
	t.Parallel()
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "An HTTP tool", Long: "First.\n\n  .indented \\x\n\n  'more'\n.last", Run: run}
	sub := &cobra.Command{Use: "sub [FILE]", Short: "Do it", Run: run, Example: "  tool sub --dry-run"}
	sub.Flags().StringP("out-file", "o", "a.txt", "write to this `file`;\nmay be -")
	sub.Flags().Bool("secret", false, "hidden")
	sub.Flags().MarkHidden("secret")
	root.AddCommand(sub, &cobra.Command{Use: "ghost", Hidden: true, Run: run})
	pages := Pages(root, "tool v1")
	if len(pages) != 2 {
		t.Fatalf("%d pages", len(pages))
	}
	for page, wants := range map[string][]string{
		"tool.1": {".TH TOOL 1 \"\" \"tool v1\"", "tool \\- an HTTP tool\n", "First.\n.PP\n.nf\n  .indented \\ex\n\n  \\(aqmore\\(aq\n.fi\n.PP\n\\&.last\n",
			".TP\n\\fBtool\\-sub\\fR(1)\nDo it.\n"},
		"tool-sub.1": {"tool\\-sub \\- do it\n", ".B tool sub [FILE] [flags]\n",
			"\\fB\\-o\\fR, \\fB\\-\\-out\\-file\\fR \\fIfile\\fR\nwrite to this file; may be \\- (default a.txt)\n", "\\fBtool\\fR(1)"},
	} {
		for _, want := range wants {
			if !strings.Contains(string(pages[page]), want) {
				t.Errorf("%s does not have %q:\n%s", page, want, pages[page])
			}
		}
		if strings.Contains(string(pages[page]), "secret") || strings.Contains(string(pages[page]), "ghost") {
			t.Errorf("%s has what is hidden", page)
		}
	}
}
