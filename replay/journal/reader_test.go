package journal

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// TestRead: what is known is given, what is not is neither asked nor run, and
// nothing is written, the folder included.
func TestRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	known := pipeline.Site{Row: "a", Purpose: "candidate"}
	unknown := pipeline.Site{Row: "b", Purpose: "candidate"}
	asked, ran := 0, 0
	model := modelFunc(func() (*pipeline.Reply, error) {
		asked++
		return &pipeline.Reply{Text: "yes"}, nil
	})
	ask := func(j *Journal, site pipeline.Site) string {
		req := &pipeline.Request{Model: "m", Messages: []pipeline.Message{pipeline.TextMessage("user", "well?")}}
		req.Site = site
		reply, err := j.Model(model).Generate(t.Context(), req)
		if err != nil {
			return outcome("", err)
		}
		return reply.Text
	}
	run := func(j *Journal, site pipeline.Site, effects pipeline.Effects) string {
		return outcome(j.Tool(t.Context(), site, "look", datasets.RawValue(`{}`), effects, func() (string, bool, error) {
			ran++
			return "found", false, nil
		}))
	}
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	const noReply, noResult = "never_recorded not-answered: the run's journal has no reply of the model m here", "never_recorded not-answered: the run's journal has no result of the tool look here"
	j, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(j, known); got != noReply {
		t.Errorf("without a journal the model said %q", got)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("reading made the folder")
	}

	j, err = Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := j.Begin(known, "id1", started); err != nil {
		t.Fatal(err)
	}
	ask(j, known)
	run(j, known, pipeline.EffectsChange)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	asked, ran = 0, 0

	j, err = Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	later := started.Add(time.Hour)
	for site, want := range map[pipeline.Site]string{known: "id1", unknown: "id2"} {
		if id, _, err := j.Begin(site, "id2", later); id != want || err != nil {
			t.Errorf("the call of %s began as %s: %v", site.Row, id, err)
		}
	}
	for _, c := range []struct{ what, got, want string }{
		{"a model's known reply", ask(j, known), "yes"},
		{"an unknown one", ask(j, unknown), noReply},
		{"a tool's known result", run(j, known, pipeline.EffectsChange), "found"},
		{"an unknown one", run(j, unknown, pipeline.EffectsChange), noResult},
		{"an unknown one of a tool that reads", run(j, unknown, pipeline.EffectsRead), noResult},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
	if asked != 0 || ran != 0 {
		t.Errorf("asked %d times, ran %d times", asked, ran)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("the folder has %v: %v", files, err)
	}
}
