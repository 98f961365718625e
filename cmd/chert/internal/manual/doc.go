// Package manual writes the manual pages of a command and its subcommands in roff, for man(1).
package manual

// It executes no templates, which would make the linker keep the exported methods of every type; see TestNoTemplates.
