package provider

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
	"evalrun/internal/canon"
	"evalrun/pipeline"
)

// The requests of the batch API: files are sent and fetched, batches of them made,
// listed and looked at.

const (
	batchEndpoint = "/v1/chat/completions" // as lines and batches name it
	maxFile       = 1 << 30                // the most that a file of answers may have, in bytes

	// filesStay is how long the service keeps files: what a batch before that
	// answered is lost.
	filesStay = 30 * 24 * time.Hour
)

// The tags of a batch.
const (
	tagRun   = "evalrun_run"
	tagModel = "evalrun_model"
)

// batchObject is a batch as the service describes it.
type batchObject struct {
	ID       string            `json:"id"`
	Status   string            `json:"status"`
	Created  int64             `json:"created_at"` // seconds since 1970
	Input    string            `json:"input_file_id"`
	Output   string            `json:"output_file_id"`
	Failed   string            `json:"error_file_id"`
	Metadata map[string]string `json:"metadata"`
	Errors   struct {
		Data []batchError `json:"data"`
	} `json:"errors"`
}

// batchError is why a batch was not begun.
type batchError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Line    int    `json:"line"` // of its file; 0 when it is about all
}

func (o *batchObject) finished() bool {
	return slices.Contains([]string{"completed", "failed", "expired", "cancelled"}, o.Status)
}

// batchResult is what became of a request in a batch.
type batchResult struct {
	ID       string `json:"custom_id"`
	Response *struct {
		Status int            `json:"status_code"`
		Body   jsontext.Value `json:"body"`
	} `json:"response"`
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (r *batchResult) answered() bool {
	return r.Response != nil && r.Response.Status >= 200 && r.Response.Status <= 299
}

// line is the request's line in a batch's file.
func (m *batched) line(e *batchEntry) []byte {
	e.settings = m.settings(e.request.Config)
	b := canon.AppendString([]byte(`{"custom_id":`), e.id)
	b = append(canon.AppendString(append(b, `,"method":"POST","url":`...), batchEndpoint), `,"body":`...)
	b = append(append(b, m.body(e.request, e.settings)...), '}')
	for i, c := range b { // white space between tokens: texts have them escaped
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
	return append(b, '\n')
}

// exchange is a request to the batch API as the limiter sees it.
type exchange func(context.Context) error

func (do exchange) Generate(ctx context.Context, _ *pipeline.Request) (*pipeline.Reply, error) {
	if err := do(ctx); err != nil {
		return nil, err
	}
	return &pipeline.Reply{}, nil
}

// ask sends one request to the batch API, within the limits. into gets the answer
// when it is not nil.
func (m *batched) ask(ctx context.Context, method, path, contentType string, body []byte, into any) ([]byte, *pipeline.Failure) {
	files := *m.service
	files.most = maxFile
	ctx = pipeline.WithSending(ctx, func([]pipeline.Attempt) error { return nil }) // it is nobody's request
	var data []byte
	_, err := m.limiter.Limit(exchange(func(ctx context.Context) error {
		var said serviceError
		got, err := files.do(ctx, method, path, contentType, body, said.read)
		if err != nil {
			return err
		}
		if data = got.body; into != nil && readBody(data, into) != nil {
			return m.unreadable(data, "it is no JSON of the batch API")
		}
		return nil
	})).Generate(ctx, &pipeline.Request{})
	if err != nil {
		return nil, asFailure(err)
	}
	return data, nil
}

func (m *batched) get(ctx context.Context, path string, into any) *pipeline.Failure {
	_, err := m.ask(ctx, http.MethodGet, path, "", nil, into)
	return err
}

// submit sends a file and makes a batch of it.
func (m *batched) submit(ctx context.Context, file []byte) (id string, err *pipeline.Failure) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("purpose", "batch") // writing to memory does not fail
	part, _ := w.CreateFormFile("file", "evalrun.jsonl")
	_, _ = part.Write(file)
	_ = w.Close()
	var sent struct {
		ID string `json:"id"`
	}
	if _, err := m.ask(ctx, http.MethodPost, "/files", w.FormDataContentType(), form.Bytes(), &sent); err != nil {
		return "", err
	}
	create := datasets.Values{
		"input_file_id": datasets.Text(sent.ID), "endpoint": datasets.Text(batchEndpoint), "completion_window": datasets.Text("24h"),
	}
	if m.o.Run.ID != "" {
		create["metadata"] = datasets.Values{tagRun: datasets.Text(m.o.Run.ID), tagModel: datasets.Text(m.model)}.Object()
	}
	var made batchObject
	if _, err := m.ask(ctx, http.MethodPost, "/batches", "application/json", []byte(create.Object().JSON()), &made); err != nil {
		return "", err
	}
	if made.ID == "" {
		return "", m.failf(pipeline.TypeServer, "unreadable-answer", "made a batch without an id")
	}
	return made.ID, nil
}

// tagged yields the batches of the run and the model, the newest first.
func (m *batched) tagged(ctx context.Context) iter.Seq2[*batchObject, *pipeline.Failure] {
	return func(yield func(*batchObject, *pipeline.Failure) bool) {
		oldest := m.now().Add(-filesStay).Unix()
		for after := ""; ; {
			query := url.Values{"limit": {"100"}}
			if after != "" {
				query.Set("after", after)
			}
			var page struct {
				Data []batchObject `json:"data"`
				More bool          `json:"has_more"`
			}
			if err := m.get(ctx, "/batches?"+query.Encode(), &page); err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Data {
				o := &page.Data[i]
				if o.Created < oldest {
					return
				}
				if o.Metadata[tagRun] == m.o.Run.ID && o.Metadata[tagModel] == m.model && !yield(o, nil) {
					return
				}
			}
			if !page.More || len(page.Data) == 0 {
				return
			}
			after = page.Data[len(page.Data)-1].ID
		}
	}
}

// content is the lines of a file; no file has none.
func (m *batched) content(ctx context.Context, file string) ([]batchResult, *pipeline.Failure) {
	if file == "" {
		return nil, nil
	}
	data, err := m.ask(ctx, http.MethodGet, "/files/"+url.PathEscape(file)+"/content", "", nil, nil)
	if err != nil {
		return nil, err
	}
	return readResults(data), nil
}

// readResults reads the lines of a file. One that cannot be read is left out: what
// it was about is not answered then.
func readResults(data []byte) (list []batchResult) {
	for line := range bytes.Lines(data) {
		var r batchResult
		if len(bytes.TrimSpace(line)) > 0 && readBody(line, &r) == nil {
			list = append(list, r)
		}
	}
	return list
}

// results are what became of a batch's requests.
func (m *batched) results(ctx context.Context, o *batchObject) ([]batchResult, *pipeline.Failure) {
	answers, err := m.content(ctx, o.Output)
	if err != nil {
		return nil, err
	}
	errors, err := m.content(ctx, o.Failed)
	return append(answers, errors...), err
}

// failed is the failure of a request that its service answered with another status
// than success, and what the service said.
func (m *batched) failed(r *batchResult) (*pipeline.Failure, serviceError) {
	var said serviceError
	if r.Response == nil {
		code := strings.ReplaceAll(cmp.Or(r.Error.Code, "batch_error"), "_", "-")
		return m.failf(pipeline.TypeServer, code, "did not answer a request of a batch: %s", cmp.Or(r.Error.Message, "it does not say why")), said
	}
	err := m.refused(&http.Response{StatusCode: r.Response.Status, Header: http.Header{}}, r.Response.Body, said.read)
	return asFailure(err), said
}

// unanswered is the failure of a request that a finished batch says nothing of: it
// is on that line of its file.
func (m *batched) unanswered(o *batchObject, line int) *pipeline.Failure {
	if o.Status != "failed" {
		return m.failf(pipeline.TypeServer, "batch-"+o.Status, "has no answer to this request: the batch %s is %s", o.ID, o.Status)
	}
	if o.tooMany() {
		return m.failf(pipeline.TypeRateLimit, "batch-failed", "has no room for the batch %s: %s", o.ID, o.Errors.Data[0].Message)
	}
	for _, e := range o.Errors.Data {
		if e.Line == 0 || e.Line == line {
			return m.failf(pipeline.TypeRefusal, "batch-failed", "refused the batch %s: %s", o.ID, cmp.Or(e.Message, e.Code))
		}
	}
	return m.failf(pipeline.TypeServer, "batch-failed", "refused the batch %s, and not because of this request", o.ID)
}
