package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"evalrun/datasets"
	"evalrun/internal/conf"
	"evalrun/pipeline"
)

// Options configure a model. A provider refuses what it has no use for.
type Options struct {
	Name    string          // what the run calls the model; it is in every request
	Replies string          // recorded: path of the replies file
	BaseDir string          // what a relative path is relative to; "" is the working directory
	Config  datasets.Values // sampling settings that requests carry
	Baked   bool            // the model reads only the message it was trained on

	// Of a service over HTTP.
	Model   string            // the model's name at the service; "" is Name
	BaseURL string            // its address; "" is the provider's own
	Key     Secret            // what it knows us by; "" sends none
	KeyFrom string            // where the key comes from, for messages: "the environment variable OPENAI_API_KEY"
	Headers map[string]string // further headers of every request
	Proxy   string            // address of a proxy; "" takes the environment's
	CAFile  string            // path of certificates to trust besides the system's
	Now     func() time.Time  // the clock
	Warn    func(string)      // is told, once each, what a service does not take; nil hears nothing
}

// path resolves a path of the options.
func (o Options) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(o.BaseDir, p)
}

// providers are the models a configuration can name.
var providers = map[string]func(Options) (pipeline.LM, error){
	"recorded":  openRecorded,
	"lexical":   openLexical,
	"openai":    openOpenAI,
	"anthropic": openAnthropic,
	"gemini":    openGemini,
}

// Names returns the providers that Open knows, sorted.
func Names() []string { return slices.Sorted(maps.Keys(providers)) }

// Open makes the model of a provider. Those that need no service are asked once:
// the same request would only get the same reply again.
func Open(provider string, o Options) (pipeline.LM, error) {
	open, ok := providers[provider]
	if !ok {
		if provider == "script" {
			return pipeline.LM{}, errors.New("the provider script is for tests written in Go; a configuration cannot name it")
		}
		return pipeline.LM{}, fmt.Errorf("unknown provider %q%s; the providers are %s",
			provider, didYouMean(provider, Names()), strings.Join(Names(), ", "))
	}
	lm, err := open(o)
	if err != nil {
		return pipeline.LM{}, fmt.Errorf("model %s: %w", o.Name, err)
	}
	lm.Name, lm.Config, lm.Baked = o.Name, o.Config, o.Baked
	return lm, nil
}

func openRecorded(o Options) (pipeline.LM, error) {
	if o.Replies == "" {
		return pipeline.LM{}, errors.New("the provider recorded needs replies: the path of a replies file")
	}
	if err := o.noService("recorded"); err != nil {
		return pipeline.LM{}, err
	}
	m, err := OpenRecorded(o.path(o.Replies))
	return pipeline.LM{Model: m, Deterministic: true}, err
}

func openLexical(o Options) (pipeline.LM, error) {
	if err := errors.Join(o.noReplies("lexical"), o.noService("lexical")); err != nil {
		return pipeline.LM{}, err
	}
	return pipeline.LM{Model: Lexical{}, Deterministic: true}, nil
}

// noReplies refuses a replies file.
func (o Options) noReplies(provider string) error {
	if o.Replies == "" {
		return nil
	}
	return fmt.Errorf("the provider %s takes no replies; to serve a replies file use the provider recorded", provider)
}

// noService refuses what is for services alone.
func (o Options) noService(provider string) error {
	for _, s := range []struct {
		name  string
		given bool
	}{
		{"model", o.Model != ""},
		{"base_url", o.BaseURL != ""},
		{"key", o.Key != ""},
		{"headers", len(o.Headers) > 0},
		{"proxy", o.Proxy != ""},
		{"ca_file", o.CAFile != ""},
	} {
		if s.given {
			return fmt.Errorf("the provider %s asks no service over a network, so it takes no %s", provider, s.name)
		}
	}
	return nil
}

// didYouMean is a suggestion to end a message about an unknown word with; "" when
// no known word is near.
func didYouMean(word string, known []string) string {
	if near := conf.Suggest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// ended is the failure of a request whose context is over; nil while it is not.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	f, ok := errors.AsType[*pipeline.Failure](cause)
	switch {
	case errors.Is(cause, context.DeadlineExceeded), ok && f.Type == pipeline.TypeTimeout:
		return pipeline.Failf(pipeline.TypeTimeout, "", "the time for the request was over before it was answered")
	default:
		return pipeline.Failf(pipeline.TypeCancelled, "", "the request was canceled before it was answered")
	}
}
