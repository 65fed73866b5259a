package replay

import (
	"cmp"
	"maps"
	"slices"
)

// Stats says what records there are.
type Stats struct {
	Calls         int64          `json:"calls"`
	Ratings       int64          `json:"ratings"`
	Rated         int64          `json:"rated"`          // calls that some rating is about
	Unknown       int64          `json:"unknown_calls"`  // ratings of calls that are not here
	First         string         `json:"first"`          // start of the first call; "" when unknown
	Last          string         `json:"last"`           // start of the last call
	Whole         int64          `json:"whole"`          // calls whose whole content is here
	Failed        int64          `json:"failed"`         // calls with an error
	Conversations int64          `json:"conversations"`  // conversations with turns here
	Evaluation    int64          `json:"evaluation"`     // calls made by an evaluation or optimization, which are no use
	NotReplayable int64          `json:"not_replayable"` // calls of which a plugin replaced a request
	Verdicts      []Count        `json:"verdicts"`       // ratings by verdict; "" is a withdrawn one
	Programs      []ProgramStats `json:"programs"`       // by number of calls
	Models        []Count        `json:"models"`         // calls by the answering model
	Plugins       []Count        `json:"plugins"`        // calls that a plugin changed, by "name version"
	Formats       []Count        `json:"formats"`        // calls by format of the call log
	Skipped       []Skip         `json:"skipped"`        // what was left out, and why
}

// ProgramStats says what records there are of one program.
type ProgramStats struct {
	Module   string  `json:"module"`
	Name     string  `json:"name"`
	Kind     string  `json:"kind"`
	Calls    int64   `json:"calls"`
	Rated    int64   `json:"rated"`
	Failed   int64   `json:"failed"`
	Versions []Count `json:"versions"` // by number of calls
}

// Count is how often something occurs.
type Count struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// ReadStats reads all records of a source once. It holds the ids of rated calls
// and of conversations in memory, and nothing else of the records.
func ReadStats(src Source) (*Stats, error) {
	s := &Stats{}
	rated := map[string]int64{} // ratings by call
	verdicts := counter{}
	for r, err := range src.Ratings() {
		if err != nil {
			return nil, err
		}
		s.Ratings++
		rated[r.Call]++
		verdicts[r.Verdict]++
	}
	s.Unknown = s.Ratings
	type key struct{ module, name, kind string }
	type program struct {
		calls, rated, failed int64
		versions             counter
	}
	programs := map[key]*program{}
	models, plugins, formats, conversations := counter{}, counter{}, counter{}, counter{}
	for r, err := range src.Calls(Want{All: true}) {
		if err != nil {
			return nil, err
		}
		s.Calls++
		k := key{r.Program.Module, r.Program.Name, r.Program.Kind}
		p := programs[k]
		if p == nil {
			p = &program{versions: counter{}}
			programs[k] = p
		}
		p.calls++
		p.versions[r.Program.Version]++
		if n := rated[r.ID]; n > 0 {
			s.Rated++
			p.rated++
			s.Unknown -= n
		}
		if r.Error != nil {
			s.Failed++
			p.failed++
		}
		if r.Whole() {
			s.Whole++
		}
		if r.Replayable != nil && !*r.Replayable {
			s.NotReplayable++
		}
		if r.Caller != nil && (r.Caller.Evaluation != "" || r.Caller.Optimization != "") {
			s.Evaluation++
		}
		if r.Conversation != nil {
			conversations[r.Conversation.ID]++
		}
		if r.Model != "" {
			models[r.Model]++
		}
		formats[formatName(r.Format)]++
		changed := map[string]bool{}
		for _, c := range r.Changes {
			changed[c.Plugin+" "+c.Version] = true
		}
		for name := range changed {
			plugins[name]++
		}
		if at := r.StartedText(); !r.Started.IsZero() {
			if s.First == "" || at < s.First {
				s.First = at
			}
			s.Last = max(s.Last, at)
		}
	}
	for k, p := range programs {
		s.Programs = append(s.Programs, ProgramStats{k.module, k.name, k.kind, p.calls, p.rated, p.failed, p.versions.counts()})
	}
	slices.SortFunc(s.Programs, func(a, b ProgramStats) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	s.Conversations = int64(len(conversations))
	s.Verdicts, s.Models, s.Plugins, s.Formats = verdicts.counts(), models.counts(), plugins.counts(), formats.counts()
	s.Skipped = src.Skipped()
	return s, nil
}

func formatName(format int) string { return "functai_call " + string(rune('0'+format)) }

// counter counts by name.
type counter map[string]int64

// counts are the names, the most frequent first.
func (t counter) counts() []Count {
	list := []Count{}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		list = append(list, Count{name, t[name]})
	}
	slices.SortStableFunc(list, func(a, b Count) int { return cmp.Compare(b.Count, a.Count) })
	return list
}
