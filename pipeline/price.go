package pipeline

// Price is what a million tokens cost, in the currency of the budget.
type Price struct {
	Input       float64  `json:"input"`
	Output      float64  `json:"output"`
	CachedInput *float64 `json:"cached_input,omitzero"` // of input tokens that the service had cached; nil: as other input

	Batch bool `json:"batch,omitzero"` // the price of requests in batches
}

// InBatches is the price of requests that are sent in batches: half.
func (p Price) InBatches() *Price {
	half := Price{Input: p.Input / 2, Output: p.Output / 2, Batch: true}
	if p.CachedInput != nil {
		half.CachedInput = new(*p.CachedInput / 2)
	}
	return &half
}

// Cost is the price of tokens; nil when the price or how many there were is not
// known. Cached input tokens are among the input tokens, and reasoning tokens
// among the output tokens.
func (p *Price) Cost(u Usage) *float64 {
	if p == nil || u.Input == nil || u.Output == nil {
		return nil
	}
	cost := float64(*u.Input)*p.Input + float64(*u.Output)*p.Output
	if p.CachedInput != nil && u.Cached != nil {
		cost -= float64(min(*u.Cached, *u.Input)) * (p.Input - *p.CachedInput)
	}
	cost /= 1e6
	return &cost
}

// Sane reports whether costs of this price are numbers: from 0 to a million for a
// million tokens.
func (p *Price) Sane() bool {
	ok := func(f float64) bool { return f >= 0 && f <= 1e6 }
	return ok(p.Input) && ok(p.Output) && (p.CachedInput == nil || ok(*p.CachedInput))
}
