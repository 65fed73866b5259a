package providertest

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
)

// Fate is what becomes of a batch.
type Fate string

// The fates of batches.
const (
	Completes Fate = ""          // each request is answered, or refused, as the dialect has it
	Fails     Fate = "failed"    // the service finds the batch wrong, and does not say which line
	Overflows Fate = "overflows" // the service has no room for so many tokens: it fails
	Expires   Fate = "expired"   // the first half of the requests is answered when its time is over
	Cancelled Fate = "cancelled" // nothing is answered
)

// Batches is a batch API as OpenAI has it, over a dialect that answers the requests
// in batches. Its own dialect is [Batches.Answer]. It is safe for concurrent use.
type Batches struct {
	Dialect Dialect // nil: [OpenAI]
	Looks   int     // how often a batch can be looked at before it is finished
	Fates   []Fate  // of the batches in the order they are made; all others complete
	Stays   string  // a batch with this text in it is never finished; "" is none
	Page    int     // batches on a page of their list; 0: as many as are asked for

	mu      sync.Mutex
	held    bool
	files   []batchFile
	batches []*simulatedBatch // the latest last
}

type batchFile struct{ purpose, content string }

type simulatedBatch struct {
	ID        string            `json:"id"`
	Object    string            `json:"object"`
	Endpoint  string            `json:"endpoint"`
	Input     string            `json:"input_file_id"`
	Window    string            `json:"completion_window"`
	Status    string            `json:"status"`
	Created   int64             `json:"created_at"`
	Output    *string           `json:"output_file_id"`
	Failed    *string           `json:"error_file_id"`
	Errors    any               `json:"errors"`
	Metadata  map[string]string `json:"metadata"`
	lines     []batchLine
	fate      Fate
	looks     int
	stays     bool
	mistake   string // what is wrong with its file
	mistakeAt int    // the line it is in
}

type batchLine struct {
	ID     string         `json:"custom_id"`
	Method string         `json:"method"`
	URL    string         `json:"url"`
	Body   jsontext.Value `json:"body"`
}

// Hold keeps batches from being finished until it is called with false.
func (b *Batches) Hold(held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = held
}

// Made is how many batches were made.
func (b *Batches) Made() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.batches)
}

// Sent is how often a request of each custom_id was in a batch that was begun.
func (b *Batches) Sent() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	sent := map[string]int{}
	for _, batch := range b.batches {
		if batch.Status != "failed" {
			for _, l := range batch.lines {
				sent[l.ID]++
			}
		}
	}
	return sent
}

// Answer is the dialect of the batch API; all other requests are those of the
// dialect below.
func (b *Batches) Answer(r *http.Request, body []byte) (status int, header http.Header, response []byte) {
	_, path, _ := strings.Cut(r.URL.Path, "/v1/")
	parts := strings.Split(path, "/")
	b.mu.Lock()
	defer b.mu.Unlock()
	switch route := r.Method + " " + parts[0]; {
	case route == "POST files" && len(parts) == 1:
		return b.upload(r, body)
	case route == "GET files" && len(parts) == 3 && parts[2] == "content":
		return b.download(parts[1])
	case route == "POST batches" && len(parts) == 1:
		return b.create(body)
	case route == "GET batches" && len(parts) == 1:
		return b.list(r)
	case route == "GET batches" && len(parts) == 2:
		return b.get(r, parts[1])
	case parts[0] == "files" || parts[0] == "batches":
		return openAIError(http.StatusNotFound, "Invalid URL ("+r.Method+" "+r.URL.Path+")", "", "")
	}
	return b.dialect()(r, body)
}

func (b *Batches) dialect() Dialect {
	if b.Dialect == nil {
		return OpenAI
	}
	return b.Dialect
}

func (b *Batches) keep(purpose, content string) string {
	b.files = append(b.files, batchFile{purpose, content})
	return "file-" + strconv.Itoa(len(b.files))
}

func (b *Batches) file(id string) (batchFile, bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "file-"))
	if err != nil || n < 1 || n > len(b.files) {
		return batchFile{}, false
	}
	return b.files[n-1], true
}

func (b *Batches) upload(r *http.Request, body []byte) (int, http.Header, []byte) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return openAIError(http.StatusBadRequest, "Invalid content type", "", "")
	}
	fields := map[string]string{}
	for form := multipart.NewReader(bytes.NewReader(body), params["boundary"]); ; {
		part, err := form.NextPart()
		if err != nil {
			break
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return openAIError(http.StatusBadRequest, "The form breaks off.", "", "")
		}
		fields[part.FormName()] = string(content)
	}
	if fields["purpose"] != "batch" || fields["file"] == "" {
		return openAIError(http.StatusBadRequest, "'file' and 'purpose' are required properties", "", "")
	}
	return ok(map[string]any{"id": b.keep("batch", fields["file"]), "object": "file", "purpose": "batch", "bytes": len(fields["file"])})
}

func (b *Batches) download(id string) (int, http.Header, []byte) {
	f, there := b.file(id)
	if !there {
		return openAIError(http.StatusNotFound, "No such File object: "+id, "", "id")
	}
	return http.StatusOK, http.Header{"Content-Type": {"application/octet-stream"}}, []byte(f.content)
}

func (b *Batches) create(body []byte) (int, http.Header, []byte) {
	made := &simulatedBatch{}
	if err := json.Unmarshal(body, made, json.RejectUnknownMembers(true)); err != nil {
		return openAIError(http.StatusBadRequest, "We could not parse the JSON body of your request.", "", "")
	}
	f, there := b.file(made.Input)
	switch {
	case !there || f.purpose != "batch":
		return openAIError(http.StatusBadRequest, "No such File object: "+made.Input, "", "input_file_id")
	case made.Endpoint != "/v1/chat/completions":
		return openAIError(http.StatusBadRequest, "Invalid value: '"+made.Endpoint+"'.", "", "endpoint")
	case made.Window != "24h":
		return openAIError(http.StatusBadRequest, "Invalid value: '"+made.Window+"'.", "", "completion_window")
	case len(made.Metadata) > 16:
		return openAIError(http.StatusBadRequest, "Too many properties in 'metadata'.", "", "metadata")
	}
	if n := len(b.batches); n < len(b.Fates) {
		made.fate = b.Fates[n]
	}
	made.ID, made.Object, made.Status = fmt.Sprintf("batch_%d", len(b.batches)+1), "batch", "validating"
	made.Created = 4_000_000_000 // no clock makes it too old
	made.read(f.content)
	made.stays = b.Stays != "" && strings.Contains(f.content, b.Stays)
	b.batches = append(b.batches, made)
	return ok(made)
}

// read reads and checks the batch's file.
func (made *simulatedBatch) read(content string) {
	wrong := func(line int, what string) {
		if made.mistake == "" {
			made.mistake, made.mistakeAt = what, line
		}
	}
	seen := map[string]bool{}
	n := 0
	for text := range strings.Lines(content) {
		n++
		var l batchLine
		switch err := json.Unmarshal([]byte(text), &l, json.RejectUnknownMembers(true)); {
		case err != nil:
			wrong(n, "invalid_json_line")
		case l.ID == "" || len(l.ID) > 64 || seen[l.ID]:
			wrong(n, "duplicate_custom_id")
		case l.Method != http.MethodPost || l.URL != made.Endpoint:
			wrong(n, "invalid_url")
		}
		seen[l.ID] = true
		made.lines = append(made.lines, l)
	}
	if n == 0 || n > 50_000 {
		wrong(0, "too_many_tasks")
	}
}

func (b *Batches) list(r *http.Request) (int, http.Header, []byte) {
	q := r.URL.Query()
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > 100 {
		limit = 20
	}
	if b.Page > 0 {
		limit = min(limit, b.Page)
	}
	page := []*simulatedBatch{}
	more, passed := false, q.Get("after") == ""
	for _, batch := range slices.Backward(b.batches) {
		switch {
		case !passed:
			passed = batch.ID == q.Get("after")
		case len(page) == limit:
			more = true
		default:
			page = append(page, batch)
		}
	}
	return ok(map[string]any{"object": "list", "data": page, "has_more": more})
}

func (b *Batches) get(r *http.Request, id string) (int, http.Header, []byte) {
	i := slices.IndexFunc(b.batches, func(batch *simulatedBatch) bool { return batch.ID == id })
	if i < 0 {
		return openAIError(http.StatusNotFound, "No batch found with id '"+id+"'.", "", "")
	}
	batch := b.batches[i]
	if batch.Status == "validating" || batch.Status == "in_progress" {
		b.move(r, batch)
	}
	return ok(batch)
}

// move takes a batch a state further.
func (b *Batches) move(r *http.Request, batch *simulatedBatch) {
	batch.looks++
	switch {
	case batch.mistake != "":
		batch.fail(batch.mistake, batch.mistakeAt)
	case batch.fate == Fails:
		batch.fail("invalid_batch", 0)
	case batch.fate == Overflows:
		batch.fail("token_limit_exceeded", 0)
	case b.held || batch.stays || batch.looks <= b.Looks:
		batch.Status = "in_progress"
	default:
		b.finish(r, batch)
	}
}

func (batch *simulatedBatch) fail(code string, line int) {
	e := map[string]any{"code": code, "message": "The batch is wrong: " + code, "param": nil, "line": nil}
	if line > 0 {
		e["line"] = line
	}
	batch.Status, batch.Errors = "failed", map[string]any{"object": "list", "data": []any{e}}
}

// finish answers the requests of a batch.
func (b *Batches) finish(r *http.Request, batch *simulatedBatch) {
	batch.Status = "completed"
	answered := len(batch.lines)
	switch batch.fate {
	case Expires:
		batch.Status, answered = "expired", answered/2
	case Cancelled:
		batch.Status, answered = "cancelled", 0
	}
	var answers, failures strings.Builder
	for i, l := range batch.lines {
		line := map[string]any{"id": "batch_req_" + strconv.Itoa(i), "custom_id": l.ID, "response": nil, "error": nil}
		to := &answers
		if i >= answered {
			line["error"] = map[string]any{"code": "batch_" + batch.Status, "message": "This request could not be executed in time."}
			to = &failures
		} else {
			one := r.Clone(r.Context())
			one.Method, one.URL.Path = l.Method, l.URL
			status, _, response := b.dialect()(one, l.Body)
			if status > 299 {
				to = &failures
			}
			line["response"] = map[string]any{"status_code": status, "request_id": "req_1", "body": datasets.RawValue(string(response))}
		}
		to.Write(append(encode(line), '\n'))
	}
	for _, f := range []struct {
		text string
		id   **string
	}{{answers.String(), &batch.Output}, {failures.String(), &batch.Failed}} {
		if f.text != "" {
			*f.id = new(b.keep("batch_output", f.text))
		}
	}
}
