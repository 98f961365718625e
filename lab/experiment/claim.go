package experiment

import (
	"fmt"
	"math"
)

// Verdict says what became of a claim.
type Verdict string

const (
	Held        Verdict = "held"
	HeldInPart  Verdict = "held in part"
	Refuted     Verdict = "refuted"
	NotMeasured Verdict = "not measured"
)

// Claim is a sentence that somebody published, and the rule by which it is judged here. The rule is stated before
// anything is measured, and Judge is nothing but that rule.
type Claim struct {
	Text string // what was published
	Rule string // when it holds, and when in part
	// Here is a text with {names} of values: what was measured.
	Here  string
	Judge func(v Values) Verdict
	// Why explains each verdict to a reader of the story.
	Why map[Verdict]string
}

// Finding is a claim with its verdict.
type Finding struct {
	Claim    string  `json:"claim"`
	Rule     string  `json:"rule"`
	Measured string  `json:"measured"`
	Verdict  Verdict `json:"verdict"`
	Why      string  `json:"why,omitempty"`
}

func (c Claim) finding(v Values) Finding {
	verdict := c.Judge(v)
	return Finding{Claim: c.Text, Rule: c.Rule, Measured: v.fill(c.Here), Verdict: verdict, Why: c.Why[verdict]}
}

// within judges by a figure: held from low to high, in part where that is missed by at most the factor slack.
func within(x, low, high, slack float64) Verdict {
	switch {
	case math.IsNaN(x):
		return NotMeasured
	case low <= x && x <= high:
		return Held
	case low/slack <= x && x <= high*slack:
		return HeldInPart
	}
	return Refuted
}

// count judges by how many of several conditions are true: all, some or none.
func count(conditions ...bool) Verdict {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	switch n {
	case len(conditions):
		return Held
	case 0:
		return Refuted
	}
	return HeldInPart
}

// needing is judge, if all the values it needs were measured.
func needing(judge func(v Values) Verdict, names ...string) func(v Values) Verdict {
	return func(v Values) Verdict {
		if !v.has(names...) {
			return NotMeasured
		}
		return judge(v)
	}
}

// above is "a is above b": held from factor on, in part from equal on.
func above(a, b string, factor float64) func(v Values) Verdict {
	return func(v Values) Verdict {
		x := v.ratio(a, b)
		switch {
		case math.IsNaN(x):
			return NotMeasured
		case x >= factor:
			return Held
		case x >= 1:
			return HeldInPart
		}
		return Refuted
	}
}

// Figure is one row of what was published.
type Figure struct {
	ID        string
	Server    string // whose it is
	What      string
	Published string
	// Experiment repeats it, and Here is what that measured, a text with {names} of values.
	Experiment, Here string
	// Why says, where there is no experiment, why it cannot be measured on one machine.
	Why string
}

func (f Figure) String() string { return fmt.Sprintf("%s: %s, %s", f.ID, f.Server, f.What) }
