// Package experiment repeats what the authors of five servers have published about them: the same work, the published
// figures beside the measured ones, and a verdict on each claim by a rule that was stated before.
package experiment

// Each experiment is one file, and an entry in All. It fills Values; claims, figures, tables of pages and verdicts are
// computed from those, so that they can be tested without measuring anything.
