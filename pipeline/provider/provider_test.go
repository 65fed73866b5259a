package provider_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/pipeline/provider"
)

func TestOpen(t *testing.T) {
	path := lines(t, true, "one")
	config := datasets.Values{"temperature": datasets.Int(0)}
	for _, o := range []struct {
		provider string
		provider.Options
	}{
		{"recorded", provider.Options{Name: "codex", Replies: path, Config: config}},
		{"recorded", provider.Options{Name: "codex", Replies: filepath.Base(path), BaseDir: filepath.Dir(path), Config: config, Baked: true}},
		{"lexical", provider.Options{Name: "codex", Config: config}},
	} {
		lm, err := provider.Open(o.provider, o.Options)
		if err != nil {
			t.Errorf("%s: %v", o.provider, err)
			continue
		}
		if lm.Name != "codex" || !lm.Deterministic || lm.Baked != o.Baked || len(lm.Config) != 1 {
			t.Errorf("%s: %+v", o.provider, lm)
		}
		if reply, err := lm.Model.Generate(t.Context(), route("one")); err != nil || reply.Provider != o.provider {
			t.Errorf("%s answers %+v, %v", o.provider, reply, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	path := lines(t, true, "one")
	for _, c := range []struct {
		provider, want string
		o              provider.Options
	}{
		{"recordd", `unknown provider "recordd"; did you mean "recorded"?; the providers are anthropic, gemini, lexical, openai, recorded`, provider.Options{}},
		{"", `unknown provider ""; the providers are anthropic, gemini, lexical, openai, recorded`, provider.Options{}},
		{"script", "the provider script is for tests written in Go", provider.Options{}},
		{"recorded", "model codex: the provider recorded needs replies", provider.Options{}},
		{"recorded", "none.jsonl: no such file", provider.Options{Replies: "none.jsonl"}},
		{"lexical", "model codex: the provider lexical takes no replies", provider.Options{Replies: "x.jsonl"}},
		{"lexical", "the provider lexical asks no service over a network, so it takes no base_url", provider.Options{BaseURL: "http://x"}},
		{"lexical", "so it takes no key", provider.Options{Key: "x"}},
		{"recorded", "the provider recorded asks no service over a network, so it takes no model", provider.Options{Replies: path, Model: "x"}},
		{"recorded", "so it takes no headers", provider.Options{Replies: path, Headers: map[string]string{"a": "b"}}},
		{"recorded", "so it takes no proxy", provider.Options{Replies: path, Proxy: "http://x"}},
		{"recorded", "so it takes no ca_file", provider.Options{Replies: path, CAFile: "x"}},
	} {
		c.o.Name = "codex"
		if lm, err := provider.Open(c.provider, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Open(%q) = %+v, %v; want %s", c.provider, lm, err, c.want)
		}
	}
	if want := []string{"anthropic", "gemini", "lexical", "openai", "recorded"}; !slices.Equal(provider.Names(), want) {
		t.Errorf("Names() = %v, want %v", provider.Names(), want)
	}
}

// manual is the page that the tests below hold to its word.
func manual(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestManualSentences runs the table of sentences: with each, the question beside
// it gets "refund", and the one after that does not.
func TestManualSentences(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\|$").FindAllStringSubmatch(manual(t), -1)
	if len(rows) < 8 {
		t.Fatalf("found %d rows of sentences in the manual", len(rows))
	}
	for _, row := range rows {
		sentence, fits, not := row[1], strings.TrimSpace(row[2]), strings.TrimSpace(row[3])
		if got := answer(t, asking(sentence, ticketChoices, fits)); got != "refund" {
			t.Errorf("%s: %q gets %q", sentence, fits, got)
		}
		if not == "none" {
			continue
		}
		if got := answer(t, asking(sentence, ticketChoices, not)); got != "question" {
			t.Errorf("%s: %q gets %q", sentence, not, got)
		}
	}
}

// TestManualRepliesFile opens the replies file shown in the manual and gets from
// it the miss that is shown.
func TestManualRepliesFile(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```(jsonl|text miss)\n(.*?)```").FindAllStringSubmatch(manual(t), -1)
	if len(blocks) != 2 || blocks[0][1] != "jsonl" {
		t.Fatalf("found %d blocks in the manual, want a replies file and a miss", len(blocks))
	}
	m := open(t, write(t, "replies.jsonl", blocks[0][2]))
	asked := &pipeline.Request{
		System:   "Answer briefly.",
		Messages: []pipeline.Message{pipeline.TextMessage("user", "Where is my card?")},
		Config:   datasets.Values{"temperature": datasets.Int(0)},
	}
	reply, err := m.Generate(t.Context(), asked)
	if err != nil || reply.Text != "It is on its way." {
		t.Fatalf("the first reply is %+v, %v", reply, err)
	}
	asked.System = "Answer kindly."
	got := failure(t, m, asked).Message
	if want := strings.Join(strings.Fields(blocks[1][2]), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
