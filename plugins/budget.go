package plugins

import (
	"context"
	"errors"
	"slices"
	"unicode/utf8"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// BudgetOptions say which fields of earlier turns are left out. A field is left
// out when one of Fields or Size says so.
type BudgetOptions struct {
	Fields []string // by name, inputs and outputs alike
	Size   int      // those of more Unicode code points than this, of their text or canonical JSON; 0 for no limit
	Whole  int      // the latest turns that are shown as they are
}

// Budget returns the plugin "budget", which leaves bulky fields out of the turns
// a conversation shows, the latest ones apart. The turns themselves stay as they
// are; a turn shown without a field is shown by its values, without its steps. A
// turn whose outputs are all left out is not shown at all: there would be no
// answer to show.
func Budget(o BudgetOptions) (*pipeline.Plugin, error) {
	fields := slices.Clone(o.Fields)
	switch {
	case o.Size < 0 || o.Whole < 0:
		return nil, errors.New("budget: the size and the number of whole turns cannot be negative")
	case o.Size == 0 && len(fields) == 0:
		return nil, errors.New("budget: it would leave nothing out; give fields or a size")
	case slices.Contains(fields, ""):
		return nil, errors.New("budget: a field's name is empty")
	}
	bulky := func(name string, v datasets.Value) bool {
		return slices.Contains(fields, name) || o.Size > 0 && codePoints(v) > o.Size
	}
	return pipeline.NewPlugin("budget", pipeline.Version("1.0.0"),
		pipeline.Description("Leaves bulky fields out of earlier turns."),
		pipeline.OnContext(func(_ context.Context, e *pipeline.ContextEvent) (*pipeline.Change, error) {
			turns := e.Turns()
			without := datasets.Values{} // lists of names by turn
			keep := []string{}
			for i, t := range turns {
				if i >= len(turns)-o.Whole {
					keep = append(keep, t.ID)
					continue
				}
				inputs, _ := bulkyOf(t.Inputs, t.Without, bulky)
				outputs, left := bulkyOf(t.Outputs, t.Without, bulky)
				if !left {
					continue
				}
				keep = append(keep, t.ID)
				if names := append(inputs, outputs...); names != nil {
					list, err := datasets.ValueOf(names)
					if err != nil {
						return nil, err
					}
					without[t.ID] = list
				}
			}
			change := &pipeline.Change{}
			if len(keep) < len(turns) {
				change.Keep = keep
			}
			if len(without) > 0 {
				change.Without = without.Object()
			}
			return change, nil
		}))
}

// bulkyOf names the values that are bulky, of those not left out already, and
// says whether any other is left.
func bulkyOf(vs datasets.Values, out []string, bulky func(string, datasets.Value) bool) (names []string, left bool) {
	for _, name := range vs.Names() {
		switch {
		case slices.Contains(out, name):
		case bulky(name, vs[name]):
			names = append(names, name)
		default:
			left = true
		}
	}
	return names, left
}

func codePoints(v datasets.Value) int {
	if s, ok := v.AsText(); ok {
		return utf8.RuneCountInString(s)
	}
	return v.Size()
}
