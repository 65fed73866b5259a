package provider

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// repliesVersion is the version of the replies file's format. A later one is
// refused: what it means is not known here.
const repliesVersion = 1

// RecordedReply is one row of a replies file: what was once answered to a
// request. A zero field is absent from the file.
type RecordedReply struct {
	RequestHash string         `json:"request_hash,omitzero"` // the request's probe hash; may be left out when Request is there
	Request     datasets.Value `json:"request,omitzero"`      // the request as JSON, by which misses are explained
	Reply       *string        `json:"reply,omitzero"`        // the text of the reply; nil: it is read from Response
	Response    datasets.Value `json:"response,omitzero"`     // the provider's response, as call logs keep it
	Finish      string         `json:"finish,omitzero"`       // why the model stopped; "" unknown
	Usage       pipeline.Usage `json:"usage,omitzero"`        // token counts
	Model       string         `json:"model,omitzero"`        // the model that served it; "" unknown
	Replicate   int            `json:"replicate,omitzero"`    // which of several replies to one request, from 0
}

// replyKey is what a reply is looked up by.
type replyKey struct {
	hash      [32]byte
	replicate int32
}

// keptReply is a reply in memory.
type keptReply struct {
	text     string
	calls    []pipeline.ToolCall // those of response
	response datasets.Value
	finish   string
	model    string
	usage    pipeline.Usage
	row      int32 // where it stands in its file
}

// checked is a row that was looked at.
type checked struct {
	key     replyKey
	reply   keptReply
	request *pipeline.Request // nil when the row keeps none
}

// check refuses a row that cannot be served, and reads what it says.
func (r RecordedReply) check() (checked, error) {
	var c checked
	if r.Replicate < 0 || r.Replicate > math.MaxInt32 {
		return c, fmt.Errorf("replicate is %d; it counts the replies to one request, from 0", r.Replicate)
	}
	c.key.replicate = int32(r.Replicate)
	c.reply = keptReply{response: given(r.Response), finish: r.Finish, model: r.Model, usage: r.Usage}
	if err := c.readHash(r.RequestHash, given(r.Request)); err != nil {
		return c, err
	}
	for _, count := range []*int64{r.Usage.Input, r.Usage.Output, r.Usage.Total, r.Usage.Cached, r.Usage.Reasoning} {
		if count != nil && *count < 0 {
			return c, fmt.Errorf("usage counts %d tokens; leave out a count that is not known", *count)
		}
	}
	for _, text := range []string{r.Finish, r.Model, r.text()} {
		if !utf8.ValidString(text) {
			return c, errors.New("a text in it is not UTF-8")
		}
	}
	c.reply.calls = responseCalls(c.reply.response)
	switch {
	case r.Reply != nil:
		c.reply.text = *r.Reply
	case c.reply.response.IsZero():
		return c, errors.New("neither reply nor response; a row needs the reply's text or the provider's response")
	default:
		text, ok := responseText(c.reply.response)
		if !ok && c.reply.calls == nil {
			return c, errors.New(`the response has neither text nor tool calls at message.parts, as a call log's has; give its text as reply`)
		}
		c.reply.text = text
		if c.reply.finish == "" {
			c.reply.finish, _ = c.reply.response.Member("finish_reason").AsText()
		}
	}
	return c, nil
}

func (r *RecordedReply) text() string {
	if r.Reply == nil {
		return ""
	}
	return *r.Reply
}

// readHash takes the row's hash and checks it against the request, when the row
// has both.
func (c *checked) readHash(hash string, request datasets.Value) error {
	if !request.IsZero() {
		req, err := pipeline.ParseRequest(request)
		if err != nil {
			return fmt.Errorf("request: %w", err)
		}
		own := req.ProbeHash()
		switch {
		case hash == "" || hash == own:
		case hash == req.Hash():
			return fmt.Errorf("request_hash is the request's hash with its model %q; replies are kept under the hash with model %q, which is %s",
				req.Model, pipeline.ProbeModel, own)
		default:
			return fmt.Errorf("request_hash is %s, but the request beside it has %s (with model %q)", hash, own, pipeline.ProbeModel)
		}
		c.request, hash = req, own
	}
	if hash == "" {
		return errors.New("neither request_hash nor request; a row needs one of them")
	}
	if !c.key.setHash(hash) {
		return fmt.Errorf("request_hash %q is not sha256: and 64 hex digits in lower case", hash)
	}
	return nil
}

// setHash takes the hash from its text form.
func (k *replyKey) setHash(hash string) (ok bool) {
	digits, ok := strings.CutPrefix(hash, "sha256:")
	if !ok || len(digits) != 2*len(k.hash) || strings.ToLower(digits) != digits {
		return false
	}
	_, err := hex.Decode(k.hash[:], []byte(digits))
	return err == nil
}

// given is v, or no value when v is null, which a file may write for absent.
func given(v datasets.Value) datasets.Value {
	if v.IsNull() {
		return datasets.Value{}
	}
	return v
}

// responseText is the text of a response as call logs keep it: the text parts of
// its message, one after the other.
func responseText(response datasets.Value) (text string, ok bool) {
	var b strings.Builder
	for part := range response.Member("message").Member("parts").Elements() {
		if kind, _ := part.Member("type").AsText(); kind == "text" {
			s, isText := part.Member("text").AsText()
			if !isText {
				return "", false
			}
			b.WriteString(s)
			ok = true
		}
	}
	return b.String(), ok
}

// responseCalls are the tools that a response, as call logs keep it, called.
func responseCalls(response datasets.Value) []pipeline.ToolCall {
	var calls []pipeline.ToolCall
	for part := range response.Member("message").Member("parts").Elements() {
		if call, ok := (pipeline.Part{Raw: part}).ToolCall(); ok {
			calls = append(calls, call)
		}
	}
	return calls
}

// otherwise names the first thing in which two replies to one request differ;
// "" when they are the same.
func (k *keptReply) otherwise(o *keptReply) string {
	switch {
	case k.text != o.text:
		return "reply"
	case !k.response.Equal(o.response):
		return "response"
	case k.finish != o.finish:
		return "finish"
	case k.model != o.model:
		return "model"
	case !sameUsage(k.usage, o.usage):
		return "usage"
	}
	return ""
}

func sameUsage(a, b pipeline.Usage) bool {
	same := func(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
	return same(a.Input, b.Input) && same(a.Output, b.Output) && same(a.Total, b.Total) &&
		same(a.Cached, b.Cached) && same(a.Reasoning, b.Reasoning)
}
