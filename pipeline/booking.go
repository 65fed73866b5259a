package pipeline

// Account is what requests are booked under.
type Account struct {
	Purpose string `json:"purpose"` // why it was asked: candidate, judge, …, or tool when a tool of a call asked
	Cause   string `json:"cause"`   // first, retry (the request failed before), or repair (the reply to it could not be read); in reports also cached
	Model   string `json:"model"`   // as the run calls it
}

// Amount is what requests took.
type Amount struct {
	Requests  int64   `json:"requests"`  // that reached a service
	Tokens    int64   `json:"tokens"`    // that are known
	Money     float64 `json:"money"`     // that is known
	Unknown   int64   `json:"unknown"`   // answered requests of which tokens or price are not known; the sums are without them
	Uncounted int64   `json:"uncounted"` // of these, those of which tokens are not known
	Doubtful  int64   `json:"doubtful"`  // requests without an answer that may have been charged all the same
}

// Add adds what other requests took.
func (a *Amount) Add(b Amount) {
	a.Requests += b.Requests
	a.Tokens += b.Tokens
	a.Money += b.Money
	a.Unknown += b.Unknown
	a.Uncounted += b.Uncounted
	a.Doubtful += b.Doubtful
}

// AtLeast raises what is less than in another account of the same requests.
func (a *Amount) AtLeast(b Amount) {
	a.Requests = max(a.Requests, b.Requests)
	a.Tokens = max(a.Tokens, b.Tokens)
	a.Money = max(a.Money, b.Money)
	a.Unknown = max(a.Unknown, b.Unknown)
	a.Uncounted = max(a.Uncounted, b.Uncounted)
	a.Doubtful = max(a.Doubtful, b.Doubtful)
}

// Booking is an account and what was booked under it.
type Booking struct {
	Account
	Amount
}
