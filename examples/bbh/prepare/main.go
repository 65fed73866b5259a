// Command prepare makes this example's data from Big-Bench Hard's own files:
//
//	go run ./examples/bbh/prepare -from DIR -to examples/bbh TASK...
//
// DIR holds TASK.jsonl.gz (id, input, target, reply_direct, reply_cot) and
// prompts.jsonl (task, mode, prefix). Every recorded direct reply becomes a call
// with a rating: right when it equals the target, else wrong with the target as
// the answer. Every reply of either kind goes into the replies file, under the
// request that really was sent. The result is the same bytes for the same input.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"iter"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/pipeline/provider"
	"evalrun/replay"
)

func main() {
	log.SetFlags(0)
	from := flag.String("from", "", "folder of Big-Bench Hard's files")
	to := flag.String("to", ".", "folder of the example")
	flag.Parse()
	if err := Prepare(*from, *to, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

type question struct {
	ID     string `json:"id"`
	Input  string `json:"input"`
	Target string `json:"target"`
	Direct string `json:"reply_direct"`
	Cot    string `json:"reply_cot"`
}

type prompt struct {
	Task   string `json:"task"`
	Mode   string `json:"mode"`
	Prefix string `json:"prefix"`
}

// modes are the two ways the questions were asked: what followed the question,
// and how the answer is read from the reply.
var modes = []struct{ name, suffix, pattern, description string }{
	{"direct", "\nA:", "", "answer only, after three worked examples"},
	{"cot", "\nA: Let's think step by step.", `(?m)the answer is (.*?)\.?$`, "chain of thought, after three worked examples"},
}

// Prepare writes programs, replies and records of the tasks into folder to.
func Prepare(from, to string, tasks []string) error {
	prompts := map[[2]string]string{}
	err := readLines(filepath.Join(from, "prompts.jsonl"), func(p prompt) { prompts[[2]string{p.Task, p.Mode}] = p.Prefix })
	if err != nil {
		return err
	}
	var replies []provider.RecordedReply
	known := map[string]string{} // request hash → reply
	var calls []byte
	for t, task := range tasks {
		var questions []question
		if err := readLines(filepath.Join(from, task+".jsonl.gz"), func(q question) { questions = append(questions, q) }); err != nil {
			return err
		}
		var programs []*pipeline.Program
		for _, m := range modes {
			prefix, ok := prompts[[2]string{task, m.name}]
			if !ok {
				return fmt.Errorf("no %s prompt of the task %s", m.name, task)
			}
			p, err := writeProgram(filepath.Join(to, "programs", task+"_"+m.name+".yaml"), task, m.description, prefix, m.suffix, m.pattern)
			if err != nil {
				return err
			}
			programs = append(programs, p)
		}
		for i, q := range questions {
			for j, text := range []string{q.Direct, q.Cot} {
				req, err := render(programs[j], q.Input)
				if err != nil {
					return err
				}
				if want := prompts[[2]string{task, modes[j].name}] + "Q: " + q.Input + modes[j].suffix; req.Messages[0].Parts[0].Text != want {
					return fmt.Errorf("%s, %s: the program does not send the prompt that was sent", q.ID, modes[j].name)
				}
				hash := req.ProbeHash()
				if had, ok := known[hash]; ok && had != text {
					return fmt.Errorf("%s: one prompt has two different replies", q.ID)
				} else if !ok {
					known[hash] = text
					replies = append(replies, provider.RecordedReply{RequestHash: hash, Request: datasets.RawValue(string(req.Canonical(pipeline.ProbeModel))), Reply: &text, Model: model})
				}
			}
			calls = appendCall(calls, programs[0], task, q, t, i)
		}
	}
	if err := os.MkdirAll(filepath.Join(to, "data"), 0o755); err != nil {
		return err
	}
	if err := provider.WriteReplies(filepath.Join(to, "data", "replies.parquet"), all(replies)); err != nil {
		return err
	}
	log, err := os.CreateTemp("", "bbh-*.jsonl")
	if err != nil {
		return err
	}
	defer os.Remove(log.Name())
	if _, err := log.Write(calls); err != nil {
		return err
	}
	if err := log.Close(); err != nil {
		return err
	}
	records := filepath.Join(to, "data", "records")
	if err := os.RemoveAll(records); err != nil {
		return err
	}
	if _, err := replay.Import(context.Background(), []string{log.Name()}, records); err != nil {
		return err
	}
	return os.Remove(filepath.Join(records, ".lock")) // nobody adds to these records
}

func all(replies []provider.RecordedReply) iter.Seq2[provider.RecordedReply, error] {
	return func(yield func(provider.RecordedReply, error) bool) {
		for _, r := range replies {
			if !yield(r, nil) {
				return
			}
		}
	}
}

const model = "code-davinci-002"

func render(p *pipeline.Program, input string) (*pipeline.Request, error) {
	in, err := p.Bind(datasets.Values{"question": datasets.Text(input)})
	if err != nil {
		return nil, err
	}
	return p.Render(pipeline.Rendering{Inputs: in, Instruction: p.Instruction(), Model: model, Facts: pipeline.ProbeFacts})
}

// writeProgram writes a program whose template sends prefix, question and suffix.
func writeProgram(file, task, description, prefix, suffix, pattern string) (*pipeline.Program, error) {
	escape := strings.NewReplacer("{", "{{", "}", "}}")
	type field struct {
		Name  string            `yaml:"name"`
		Shape map[string]string `yaml:"shape,flow"`
	}
	type message struct {
		Role string `yaml:"role"`
		Text string `yaml:"text"`
	}
	text := map[string]string{"type": "string"}
	var d struct {
		Name        string  `yaml:"name"`
		Module      string  `yaml:"module"`
		Description string  `yaml:"description"`
		Inputs      []field `yaml:"inputs"`
		Outputs     []field `yaml:"outputs"`
		Settings    struct {
			Reader   map[string]string `yaml:"reader,omitempty"`
			Template []message         `yaml:"template"`
		} `yaml:"settings"`
	}
	d.Name, d.Module, d.Description = task, "bbh", "Big-Bench Hard, "+task+": "+description+"."
	d.Inputs, d.Outputs = []field{{"question", text}}, []field{{"answer", text}}
	if pattern != "" {
		d.Settings.Reader = map[string]string{"pattern": pattern}
	}
	d.Settings.Template = []message{{"user", escape.Replace(prefix) + "Q: {question}" + suffix}}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(d); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return nil, err
	}
	return pipeline.ParseProgram(file, b.Bytes())
}

// appendCall appends the record of a direct reply and its rating, a line each.
func appendCall(log []byte, p *pipeline.Program, task string, q question, nth, row int) []byte {
	// The source says nothing of when a question was asked. These times only
	// keep its order; they begin on the day the data set was published.
	at := time.Date(2022, 10, 17, 0, 0, 0, 0, time.UTC).Add(time.Duration(nth)*time.Hour + time.Duration(row)*time.Second)
	req, err := render(p, q.Input)
	if err != nil {
		panic(err) // it rendered before
	}
	object := func(name, value string) datasets.Value {
		return datasets.Values{name: datasets.Text(value)}.Object()
	}
	whole := true
	id := uuid7(at, "call "+q.ID)
	call := replay.Record{
		Format: 2, ID: id, Root: id, Started: at, Content: &whole, Model: model,
		Program: replay.Program{
			Name: task, Kind: "ai", Module: "bbh", Version: p.Version(), Signature: p.Signature(), Interface: p.Interface(), Answer: "answer",
		},
		Inputs: object("question", q.Input), Outputs: object("answer", q.Direct),
		Exchanges: []replay.Exchange{{Model: model, RequestHash: req.Hash(), Response: object("text", q.Direct)}},
		Saw:       []replay.Saw{},
		Caller:    &replay.Caller{Kind: "benchmark"},
	}
	rating := replay.Rating{Format: 1, ID: uuid7(at, "rating "+q.ID), Call: id, At: at, By: "BIG-Bench Hard", Verdict: "right", Origin: "review"}
	if q.Direct != q.Target {
		rating.Verdict, rating.Answer = "wrong", datasets.Text(q.Target)
	}
	log = append(call.AppendJSON(log), '\n')
	return append(rating.AppendJSON(log), '\n')
}

// uuid7 makes the UUIDv7 of a time and a name, the same every time.
func uuid7(at time.Time, name string) string {
	b := sha256.Sum256([]byte(name))
	ms := at.UnixMilli()
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

func readLines[T any](file string, each func(T)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return fmt.Errorf("%s:%d: %w", file, n, err)
		}
		each(v)
	}
	return lines.Err()
}
