package pipeline

import "strings"

// What the model is told in place of a tool's result begins with one of these.
const (
	notAllowed  = "The person did not allow this call."
	allowReason = " Reason: "
	blockedBy   = "This call was blocked ("
)

// told is a person's no as the model is told it.
func (a *Answer) told() string {
	if a.Reason == "" {
		return notAllowed
	}
	return notAllowed + allowReason + a.Reason
}

// RecordedAnswer is what a person must have said of a tool call for the model to
// have been told this text: no, when the text says so; yes, when it is a result.
// ok is false when a plugin blocked the call, which nobody was asked about then.
func RecordedAnswer(told string) (a Answer, ok bool) {
	if rest, no := strings.CutPrefix(told, notAllowed); no {
		if reason, given := strings.CutPrefix(rest, allowReason); given || rest == "" {
			return Answer{Reason: reason}, true
		}
	}
	if strings.HasPrefix(told, blockedBy) {
		return Answer{}, false
	}
	return Answer{Allowed: true}, true
}
