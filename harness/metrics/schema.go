package metrics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/conf"
	"evalrun/pipeline"
)

// jsonSchema checks an output against a JSON Schema.
type jsonSchema struct {
	looking
	Schema conf.Node `conf:"schema"`
	File   string    `conf:"file"`

	compiled *jsonschema.Schema
}

func newJSONSchema(b *builder) (harness.Metric, error) {
	m := &jsonSchema{}
	if err := b.decode(m, &m.AsName); err != nil {
		return nil, err
	}
	if m.Schema.IsZero() == (m.File == "") {
		return nil, b.Errorf("json_schema needs one of schema, which is the schema itself, and file, which has it")
	}
	option, schema := "schema", m.Schema
	if m.File != "" {
		option = "file"
		data, err := os.ReadFile(b.file(m.File))
		if err != nil {
			return nil, b.at("file", "file: %v", err)
		}
		if schema, err = conf.Parse(b.file(m.File), data); err != nil {
			return nil, err
		}
	}
	var err error
	if m.compiled, err = compileSchema(schema.JSON()); err != nil {
		return nil, b.at(option, "%s: %v", option, err)
	}
	return m, b.look(&m.looking)
}

// compileSchema makes a schema of its JSON. It may refer to its own parts and the
// drafts of JSON Schema, and to nothing that would have to be fetched.
func compileSchema(text []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return nil, err
	}
	const name = "schema.json"
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	s, err := c.Compile(name)
	if bad, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		return nil, fmt.Errorf("it is no JSON Schema: %s", reasons(bad.Err))
	}
	return s, err
}

// nowhere loads no schema.
type nowhere struct{}

func (nowhere) Load(url string) (any, error) {
	return nil, errors.New("it refers to " + url + ": nothing is fetched; put that schema under $defs")
}

func (m *jsonSchema) Score(_ context.Context, _ datasets.Row, call *pipeline.Call) (harness.Score, error) {
	answer, missing := m.answer(call)
	if missing != "" {
		return missed(missing)
	}
	if inner := parsed(answer); inner.Kind() == '{' || inner.Kind() == '[' {
		answer = inner
	}
	// The canonical form has no number that takes long to work with.
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(answer.Canonical()))
	if err != nil {
		return harness.Score{}, err
	}
	if err := m.compiled.Validate(doc); err != nil {
		return harness.Score{Feedback: "the answer does not satisfy the schema: " + reasons(err)}, nil
	}
	return harness.Score{Value: 1}, nil
}

// reasons are what a validation found wrong, each with its place.
func reasons(err error) string {
	bad, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err.Error()
	}
	english := message.NewPrinter(language.English)
	var all []string
	var add func(*jsonschema.ValidationError)
	add = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			add(cause)
		}
		if len(e.Causes) == 0 {
			all = append(all, "/"+strings.Join(e.InstanceLocation, "/")+": "+e.ErrorKind.LocalizedString(english))
		}
	}
	add(bad)
	return clip(strings.Join(all, "; "))
}
