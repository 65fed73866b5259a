package harness

import (
	"slices"

	"evalrun/datasets"
	"evalrun/harness/stats"
)

// JudgeReport is what a judge did in an evaluation, and how far it agrees with
// people.
type JudgeReport struct {
	JudgeFacts

	// Of the answers it was calibrated on: those that people rated, judged again by
	// it. A person's categories are right and wrong; a verdict is one of them by
	// Right.
	N         int               `json:"n"`                  // rated answers it was shown
	Missing   int               `json:"missing"`            // of them, answers it gave no verdict on; they are in none of the following
	Confusion [][2]int          `json:"confusion,omitzero"` // verdict, in the order of Verdicts × what the person said: right, wrong
	Agreement stats.Coefficient `json:"agreement"`
	Kappa     stats.Coefficient `json:"kappa"`
	AC1       stats.Coefficient `json:"ac1"`

	// Fit says that kappa is at least MinAgreement. The scores of any other judge
	// show a trend and decide nothing.
	Fit bool `json:"fit"`

	NoVerdict map[string]int      `json:"no_verdict,omitempty"` // answers of candidates that it gave no verdict on, by reason
	Pairs     int                 `json:"pairs,omitzero"`       // answers that a pairwise judge compared with another one
	Ties      int                 `json:"ties,omitzero"`        // of them, those that were no better and no worse
	Position  *stats.PositionBias `json:"position,omitzero"`    // of a pairwise judge: whether the order decided
	Usage     Usage               `json:"usage"`                // what all its calls took, those of calibration included
	Requests  int                 `json:"requests"`             // that its model answered
}

// judged adds up what a judge said.
type judged struct {
	facts   JudgeFacts
	n       int
	missing int
	table   map[string]*[2]int // by verdict: people's right and wrong
	none    map[string]int
	orders  stats.Orders
	pairs   int
	ties    int
	usage   Usage
	asked   int
}

func (j *judged) add(k *Judged) {
	k.book(&j.usage)
	j.asked += k.Requests
	if k.Person != "" {
		j.n++
		if k.Verdict == "" {
			j.missing++
		} else {
			if j.table[k.Verdict] == nil {
				j.table[k.Verdict] = new([2]int)
			}
			j.table[k.Verdict][one(k.Person != "right")]++
		}
	}
	if k.Rated {
		return
	}
	if k.Missing != "" {
		countIn(&j.none, k.Missing)
	}
	if k.Verdict != "" && k.Orders != (stats.Orders{}) {
		j.pairs++
		j.ties += one(k.Verdict == VerdictTie)
	}
	j.orders.Same += k.Orders.Same
	j.orders.First += k.Orders.First
	j.orders.Second += k.Orders.Second
	j.orders.Tied += k.Orders.Tied
}

// book adds what a verdict took.
func (k *Judged) book(u *Usage) {
	if k.Requests == 0 {
		return
	}
	u.add(k.Usage.Input == nil || k.Usage.Output == nil, k.Usage, k.Cost)
}

func (j *judged) report(o stats.Options) (JudgeReport, error) {
	r := JudgeReport{JudgeFacts: j.facts, N: j.n, Missing: j.missing, NoVerdict: j.none, Usage: j.usage, Requests: j.asked}
	if j.facts.Mode == JudgePairwise {
		bias, err := j.orders.Bias(o)
		r.Position, r.Pairs, r.Ties = &bias, j.pairs, j.ties
		return r, err
	}
	if !j.facts.Calibrate {
		return r, nil
	}
	table := [][]int{{0, 0}, {0, 0}} // judge × person: right, wrong
	for _, verdict := range j.facts.Verdicts {
		var line [2]int
		if n := j.table[verdict]; n != nil {
			line = *n
		}
		r.Confusion = append(r.Confusion, line)
		k := one(!slices.Contains(j.facts.Right, verdict))
		table[k][0] += line[0]
		table[k][1] += line[1]
	}
	a, err := stats.Agree(table, o)
	r.Agreement, r.Kappa, r.AC1 = a.Observed, a.Kappa, a.AC1
	kappa, ok := a.Kappa.Value.Get()
	r.Fit = ok && kappa >= j.facts.MinAgreement
	return r, err
}

// finishJudges fills in what each judge did.
func (t *tally) finishJudges() error {
	for i, j := range t.judges {
		var err error
		if t.eval.Judges[i], err = j.report(t.stats); err != nil {
			return err
		}
	}
	return nil
}

// Judge returns what the judge of that metric did; nil when the metric has none.
func (e *Evaluation) Judge(metric string) *JudgeReport {
	for i := range e.Judges {
		if e.Judges[i].Metric == metric {
			return &e.Judges[i]
		}
	}
	return nil
}

// version says in one text which judge this is: scores of two are two metrics.
func (f *JudgeFacts) version() string {
	v, err := datasets.ValueOf(struct {
		Mode, Program string
		Model         ModelRef
		Plugins       []PluginRef
	}{f.Mode, f.ProgramVersion, f.Model, f.Plugins})
	if err != nil { // texts and JSON values have a JSON form
		panic("harness: a judge has no JSON form: " + err.Error())
	}
	return v.Canonical()
}

// judgeVersions are those of the judges, by metric.
func (e *Evaluation) judgeVersions() map[string]string {
	versions := map[string]string{}
	for i := range e.Judges {
		versions[e.Judges[i].Metric] = e.Judges[i].version()
	}
	return versions
}

// trends are the metrics whose judges are not fit.
func (e *Evaluation) trends() []string {
	var metrics []string
	for i := range e.Judges {
		if !e.Judges[i].Fit {
			metrics = append(metrics, e.Judges[i].Metric)
		}
	}
	return metrics
}
