package provider

import (
	"context"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// openAI is a model behind the chat completions API that OpenAI defined and many
// services and local servers speak. It is safe for concurrent use.
type openAI struct {
	*service
	name    string // the model's name at the service
	untaken *untaken
}

const openAIBase = "https://api.openai.com/v1"

// openAIOwn are members of a request that are no settings, and what to write
// instead.
var openAIOwn = map[string]string{
	"model": ownMember, "messages": ownMember, "tools": ownMember,
	"stream": "replies are read whole",
	"n":      "one reply is read",
}

func openOpenAI(o Options) (pipeline.LM, error) {
	if err := o.noReplies("openai"); err != nil {
		return pipeline.LM{}, err
	}
	if err := o.ownMembers(openAIOwn); err != nil {
		return pipeline.LM{}, err
	}
	s, err := newService(o, openAIBase)
	if err != nil {
		return pipeline.LM{}, err
	}
	s.base = strings.TrimSuffix(s.base, chatPath)
	if o.Key != "" {
		s.headers = withKey(s.headers, s.keyHeader(), string(o.Key))
	}
	return pipeline.LM{Model: &openAI{s, modelName(o), newUntaken(o)}}, nil
}

// keyHeader is the header that carries the key: Azure has one of its own.
func (s *service) keyHeader() string {
	host, _, _ := strings.Cut(s.host, ":")
	if strings.HasSuffix(host, ".azure.com") || strings.Contains(s.query, "api-version=") {
		return "Api-Key"
	}
	return "Authorization"
}

const chatPath = "/chat/completions"

// Generate asks the service. When it says that the model does not take a setting,
// it is asked again at once without, as it will be from then on.
func (m *openAI) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	for again := 0; ; again++ {
		settings := m.settings(req.Config)
		var said serviceError
		got, err := m.post(ctx, chatPath, m.body(req, settings), said.read)
		switch {
		case err == nil:
			return m.read(got)
		case again == mostLearned, !m.learn(said, settings):
			return nil, err
		}
	}
}

// learn reports whether an error says that the model does not take one of the
// settings that were sent, and remembers that.
func (m *openAI) learn(said serviceError, settings datasets.Values) bool {
	refused := said.setting(settings)
	if refused != "" {
		m.untaken.refuse(refused, "the service says: "+shorten(said.message))
	}
	return refused != ""
}
