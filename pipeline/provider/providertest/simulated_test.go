package providertest

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// The simulated services refuse what would be wrong to send.
func TestDialectsRefuse(t *testing.T) {
	messages := func(list string) string { return `{"model":"m","max_tokens":5,"messages":[` + list + `]}` }
	const user, call = `{"role":"user","content":[{"type":"text","text":"hi"}]}`, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
	contents := func(list string) string { return `{"contents":[` + list + `]}` }
	const said, called = `{"role":"user","parts":[{"text":"hi"}]}`, `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"}]}`
	for _, c := range []struct {
		dialect          Dialect
		path, body, says string
	}{
		{Anthropic, "/v1/complete", messages(user), "Not Found"},
		{Anthropic, "/v1/messages", `{`, "not valid JSON"},
		{Anthropic, "/v1/messages", `{"model":"absent","max_tokens":5,"messages":[]}`, "model: absent"},
		{Anthropic, "/v1/messages", `{"model":"m","messages":[]}`, "max_tokens: Field required"},
		{Anthropic, "/v1/messages", `{"model":"m","max_tokens":5,"seed":1,"messages":[]}`, "seed: Extra inputs are not permitted"},
		{Anthropic, "/v1/messages", messages(`{"role":"system","content":[]}`), "Input should be"},
		{Anthropic, "/v1/messages", messages(user + "," + user), "alternate"},
		{Anthropic, "/v1/messages", messages(`{"role":"user","content":[]}`), "non-empty content"},
		{Anthropic, "/v1/messages", messages(`{"role":"user","content":[{"type":"text","text":" "}]}`), "non-empty"},
		{Anthropic, "/v1/messages", messages(user + "," + call), "the last message"},
		{Anthropic, "/v1/messages", messages(user + "," + call + "," + user), "without `tool_result`"},
		{Anthropic, "/v1/messages", messages(user + `,{"role":"assistant","content":[{"type":"tool_use","id":"a.b","name":"f","input":{}}]}`), "ids must"},
		{Anthropic, "/v1/messages", messages(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}`), "unexpected `tool_use_id`"},
		{Gemini, "/v1beta/models/m", contents(said), "not found"},
		{Gemini, "/v1beta/models/m:generateContent", `[`, "Invalid JSON"},
		{Gemini, "/v1beta/models/m:generateContent", `{"fine":1}`, "Cannot find field"},
		{Gemini, "/v1beta/models/m:generateContent", `{"generationConfig":{"top_p":1}}`, "Cannot find field"},
		{Gemini, "/v1beta/models/m:generateContent", contents(`{"role":"assistant","parts":[]}`), "valid role"},
		{Gemini, "/v1beta/models/m:generateContent", contents(`{"role":"user","parts":[]}`), "at least one parts"},
		{Gemini, "/v1beta/models/m:generateContent", contents(said + "," + called), "end with a user"},
		{Gemini, "/v1beta/models/m:generateContent", contents(said + "," + called + "," + said), "number of function response parts"},
		{Gemini, "/v1beta/models/m:generateContent", contents(said + "," + strings.ReplaceAll(called, "thoughtSignature", "x")), "missing a thought_signature"},
	} {
		r := httptest.NewRequest("POST", c.path, nil)
		r.Header.Set("X-Api-Key", "k")
		r.Header.Set("Anthropic-Version", "2023-06-01")
		r.Header.Set("X-Goog-Api-Key", "k")
		status, _, body := c.dialect(r, []byte(c.body))
		if status < 400 || !strings.Contains(string(body), c.says) {
			t.Errorf("%s: %d %s, want %q", c.body, status, body, c.says)
		}
		if status, _, _ := c.dialect(httptest.NewRequest("POST", c.path, nil), []byte(c.body)); status < 401 {
			t.Errorf("%s: without a key the status is %d", c.body, status)
		}
	}
}
