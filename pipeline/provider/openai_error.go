package provider

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// serviceError is what a service says went wrong.
type serviceError struct {
	status  int
	message string // "" when it said nothing that can be read
	kind    string // its type: invalid_request_error, …
	code    string // insufficient_quota, …; a number in some
	param   string // the member of the request it is about; "" when it does not say
}

// readServiceError reads the body of an error. OpenAI has {error: {message, type,
// param, code}}; others have a text for error, its members at the top, or detail,
// which may be a list.
func readServiceError(body []byte) serviceError {
	v, err := datasets.ParseValue(body)
	if err != nil {
		return serviceError{}
	}
	for first := range v.Elements() { // a list of one, from some gateways
		v = first
		break
	}
	top := datasets.ValuesOf(v)
	if text, ok := top["error"].AsText(); ok {
		return serviceError{message: text}
	}
	said := top
	if inner := datasets.ValuesOf(top["error"]); inner != nil {
		said = inner
	}
	e := serviceError{message: wordOf(said["message"]), kind: wordOf(said["type"]), code: wordOf(said["code"]), param: wordOf(said["param"])}
	if e.message == "" {
		e.message = wordOf(top["detail"])
	}
	for first := range top["detail"].Elements() {
		e.kind, e.message = wordOf(first.Member("type")), wordOf(first.Member("msg"))
		for name := range first.Member("loc").Elements() {
			e.param = wordOf(name) // the last: what comes before leads to it
		}
		break
	}
	return e
}

// read is an explanation that keeps what the service said.
func (e *serviceError) read(status int, body []byte, f *pipeline.Failure) {
	*e = readServiceError(body)
	e.status = status
	e.explain(f)
}

// wordOf is a text, or a number as it is written; "" for anything else.
func wordOf(v datasets.Value) string {
	if v.Kind() == '0' {
		return v.JSON()
	}
	text, _ := v.AsText()
	return text
}

// explain has the failure say what the service said.
func (e serviceError) explain(f *pipeline.Failure) {
	if e.message != "" {
		f.Message = e.message
	}
	e.class(f)
}

// class tells apart what the status alone does not.
func (e serviceError) class(f *pipeline.Failure) {
	switch {
	case e.is("insufficient_quota", "billing_hard_limit_reached", "billing_not_active"), e.status == http.StatusPaymentRequired:
		f.Type, f.Code = pipeline.TypeRateLimit, quotaExhausted
	case e.is("content_filter", "content_policy_violation"):
		f.Type, f.Code = pipeline.TypeRefusal, "content-filter"
	}
}

func (e serviceError) is(codes ...string) bool {
	return slices.Contains(codes, e.code) || slices.Contains(codes, e.kind)
}

// needed are settings that a reply's form depends on: without them it could not
// be read, or would be another reply.
var needed = []string{"response_format", "tool_choice"}

var untakenWords = regexp.MustCompile(`(?i)\b(unsupported|unrecognized|unknown|unexpected|deprecated|(not|isn't|doesn't|cannot) (be )?(support(ed)?|allow(ed)?|permitted|accept(ed)?|tak(e|en))|extra (inputs|fields))\b`)

// setting is the one among those sent that the service says the model does not
// take; "" when it says nothing of that kind.
func (e serviceError) setting(sent datasets.Values) string {
	if e.status != http.StatusBadRequest && e.status != http.StatusUnprocessableEntity {
		return ""
	}
	if !e.is("unsupported_parameter", "unsupported_value", "unknown_parameter", "extra_forbidden") && !untakenWords.MatchString(e.message) {
		return ""
	}
	name := e.param
	if name == "" {
		name = firstNamed(e.message, sent)
	}
	if sent[name].IsZero() || slices.Contains(needed, name) {
		return ""
	}
	return name
}

// firstNamed is the setting that a message names first; "" when it names none.
// One whose name is a word of the language as well must be in quotes.
func firstNamed(message string, sent datasets.Values) string {
	found, at := "", len(message)
	for _, name := range sent.Names() {
		pattern := "['\"`]" + regexp.QuoteMeta(name) + "['\"`]"
		if strings.Contains(name, "_") || name == "temperature" || name == "logprobs" {
			pattern = `\b` + regexp.QuoteMeta(name) + `\b`
		}
		if i := regexp.MustCompile(pattern).FindStringIndex(message); i != nil && i[0] < at {
			found, at = name, i[0]
		}
	}
	return found
}
