package app

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/conf"
	"evalrun/pipeline"
	"evalrun/pipeline/provider"
)

// modelSpec is a model of a spec: who serves it, how it is asked, what it costs.
type modelSpec struct {
	Provider text   `conf:"provider,required"`
	Replies  string `conf:"replies"`
	Baked    bool   `conf:"baked"`

	// Of a service over HTTP.
	Model   string             `conf:"model"` // its name at the service
	BaseURL text               `conf:"base_url"`
	KeyEnv  text               `conf:"key_env"`  // the environment variable that has the key
	KeyFile text               `conf:"key_file"` // a file that holds the key alone
	Headers conf.Pairs[string] `conf:"headers"`
	Proxy   string             `conf:"proxy"`
	CAFile  string             `conf:"ca_file"`

	Concurrency       workers  `conf:"concurrency"` // requests in flight; 0 adapts
	RequestsPerMinute positive `conf:"requests_per_minute"`
	TokensPerMinute   count    `conf:"tokens_per_minute"`

	Mode text `conf:"mode"` // batch: asked in batches, for half the price; "" is one by one

	// Sampling settings, which requests carry.
	Temperature      datasets.Value `conf:"temperature"`
	MaxTokens        datasets.Value `conf:"max_tokens"`
	TopP             datasets.Value `conf:"top_p"`
	TopK             datasets.Value `conf:"top_k"`
	Seed             datasets.Value `conf:"seed"`
	Stop             datasets.Value `conf:"stop"`
	Reasoning        datasets.Value `conf:"reasoning"`
	FrequencyPenalty datasets.Value `conf:"frequency_penalty"`
	PresencePenalty  datasets.Value `conf:"presence_penalty"`
	LogitBias        datasets.Value `conf:"logit_bias"`
	Logprobs         datasets.Value `conf:"logprobs"`

	Price *priceSpec `conf:"price"`
}

type priceSpec struct {
	Input  float64 `conf:"input,required"` // per million tokens
	Output float64 `conf:"output,required"`

	CachedInput *float64 `conf:"cached_input"`
}

// settings are the sampling settings that requests carry.
func (m *modelSpec) settings() datasets.Values {
	vs := datasets.Values{}
	for name, v := range map[string]datasets.Value{
		"temperature": m.Temperature, "max_tokens": m.MaxTokens, "top_p": m.TopP, "top_k": m.TopK, "seed": m.Seed, "stop": m.Stop,
		"reasoning": m.Reasoning, "frequency_penalty": m.FrequencyPenalty, "presence_penalty": m.PresencePenalty,
		"logit_bias": m.LogitBias, "logprobs": m.Logprobs,
	} {
		if !v.IsZero() && !v.IsNull() {
			vs[name] = v
		}
	}
	return vs
}

// ref says which model this is, for the run's identity and for readers: nothing
// in it is secret.
func (m *modelSpec) ref(name string) harness.ModelRef {
	settings := m.settings()
	if m.Model != "" {
		settings["model"] = datasets.Text(m.Model)
	}
	if m.BaseURL.s != "" {
		settings["base_url"] = datasets.Text(bareURL(m.BaseURL.s))
	}
	return harness.ModelRef{Name: name, Provider: m.Provider.s, Settings: settings}
}

// bareURL is an address without what people put keys into.
func bareURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// keyVariables are where the keys of services are when a spec does not say.
var keyVariables = map[string][]string{
	"openai": {"OPENAI_API_KEY"}, "anthropic": {"ANTHROPIC_API_KEY"}, "gemini": {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
}

// key is the service's key, and where it comes from.
func (m *modelSpec) key(file string) (key provider.Secret, from string, err error) {
	if m.KeyFile.s != "" {
		if m.KeyEnv.s != "" {
			return "", "", m.KeyFile.errorf("key_file and key_env are both given: give one")
		}
		data, err := os.ReadFile(beside(file, m.KeyFile.s))
		if err != nil {
			return "", "", m.KeyFile.errorf("the key cannot be read: %v", err)
		}
		key := strings.TrimSpace(string(data))
		if key == "" || strings.ContainsAny(key, " \t\r\n") {
			return "", "", m.KeyFile.errorf("%s holds no key, or more than a key", m.KeyFile.s)
		}
		return provider.Secret(key), "the file " + m.KeyFile.s, nil
	}
	names := keyVariables[m.Provider.s]
	if m.KeyEnv.s != "" {
		names = []string{m.KeyEnv.s}
	}
	for _, name := range names {
		if key := strings.TrimSpace(os.Getenv(name)); key != "" {
			return provider.Secret(key), "the environment variable " + name, nil
		}
	}
	switch {
	case m.KeyEnv.s != "":
		return "", "", m.KeyEnv.errorf("the environment variable %s is not set, or is empty", m.KeyEnv.s)
	case len(names) > 0 && m.BaseURL.s == "":
		return "", "", m.Provider.errorf("there is no key for %s: set %s, or name another variable with key_env or a file with key_file", m.Provider.s, strings.Join(names, " or "))
	}
	if len(names) > 0 { // a service of one's own may want none
		from = "the environment variable " + strings.Join(names, " or ") + " (key_env names another)"
	}
	return "", from, nil
}

// models opens the models of a spec, once each. It is safe for concurrent use:
// plugins name models while calls are made.
type models struct {
	env    *env
	spec   *spec
	budget *provider.Budget
	cache  *replyCache        // nil when there is none
	batch  *provider.BatchRun // nil outside of a run: models are asked one by one, whatever their mode

	offline bool // no service is asked and no tool runs: no key is needed

	mu   sync.Mutex
	open map[string]*openModel
}

// openModel is a model of the spec, ready to be asked.
type openModel struct {
	lm      pipeline.LM
	ref     harness.ModelRef
	limiter *provider.Limiter // nil where nothing limits it: it is no service
	bill    provider.Bill
}

// find returns the model of that name.
func (ms *models) find(name string) (*openModel, error) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m, ok := ms.open[name]; ok {
		return m, nil
	}
	spec, err := ms.spec.model(name)
	if err != nil {
		return nil, err
	}
	m, err := ms.openOne(name, &spec)
	if err != nil {
		return nil, err
	}
	ms.open[name] = m
	return m, nil
}

func (ms *models) openOne(name string, spec *modelSpec) (*openModel, error) {
	m := &openModel{ref: spec.ref(name)}
	own, isOwn := ms.env.models[spec.Provider.s]
	if isOwn {
		m.lm = pipeline.LM{Name: name, Model: own, Config: spec.settings(), Baked: spec.Baked}
	} else {
		o, err := ms.options(name, spec)
		if err != nil {
			return nil, err
		}
		if m.lm, err = provider.Open(spec.Provider.s, o); err != nil {
			return nil, spec.Provider.errorf("%v", err)
		}
	}
	if err := spec.checkMode(); err != nil {
		return nil, err
	}
	inBatches := spec.Mode.s != "" && ms.batch != nil
	if p := spec.Price; p != nil {
		m.lm.Price = &pipeline.Price{Input: p.Input, Output: p.Output, CachedInput: p.CachedInput}
		if inBatches {
			m.lm.Price = m.lm.Price.InBatches()
		}
	}
	if spec.Replies != "" {
		var err error
		if m.ref.Content, err = hashFile(beside(ms.spec.file, spec.Replies)); err != nil {
			return nil, err
		}
	}
	if m.lm.Deterministic {
		return m, nil
	}
	var err error
	if m.limiter, err = provider.NewLimiter(name, ms.spec.Limits.of(spec), ms.env.now, ms.spec.seed()); err != nil {
		return nil, spec.Provider.errorf("%v", err)
	}
	m.bill = provider.Bill{Price: m.lm.Price, MaxTokens: ms.spec.Limits.Budget.maxTokens(), Warn: ms.env.warnOnce()}
	if ms.spec.Limits.Budget.boundsTokens() {
		if err := boundOutput(&m.lm, m.bill.MaxTokens); err != nil {
			return nil, spec.Provider.errorf("%v", err)
		}
		m.ref.Settings["max_tokens"] = m.lm.Config["max_tokens"]
	}
	m.limiter.StopOn(ms.env.stop)
	limited := m.limiter.Limit(m.lm.Model)
	if inBatches {
		if limited, err = m.limiter.Batch(m.lm.Model, provider.BatchOptions{Run: ms.batch, Stop: ms.env.stop}); err != nil {
			return nil, spec.Mode.errorf("%v", err)
		}
	}
	m.lm.Model = ms.env.logs.watched(ms.budget.Within(m.limiter.Retry(ms.budget.Model(limited, m.bill))), name, m.limiter)
	m.lm.Model = ms.cache.through(m.lm.Model, m.ref)
	return m, nil
}

// checkMode refuses a mode that there is not, and what does not go with it.
func (m *modelSpec) checkMode() error {
	switch {
	case m.Mode.s == "":
		return nil
	case m.Mode.s != "batch":
		return m.Mode.errorf("there is no mode %q%s", m.Mode.s, suggestion(m.Mode.s, []string{"batch"}))
	case m.Provider.s != "openai":
		return m.Mode.errorf("only models of the provider openai are asked in batches")
	case m.TokensPerMinute > 0:
		return m.Mode.errorf("tokens_per_minute is of requests one by one, and a service bounds batches itself: leave one of the two out")
	}
	return nil
}

// boundOutput lets requests say the most they want: without a bound on a reply no
// budget can be kept.
func boundOutput(lm *pipeline.LM, most int64) error {
	if v, ok := lm.Config["max_tokens"]; ok {
		if n, ok := v.AsInt(); !ok || n < 1 {
			return fmt.Errorf("max_tokens is %s; it is a number of tokens, from 1", v.JSON())
		}
		return nil
	}
	config := datasets.Values{"max_tokens": datasets.Int(most)}
	for name, v := range lm.Config {
		config[name] = v
	}
	lm.Config = config
	return nil
}

// past books a request that an earlier process of the run sent.
func (ms *models) past(sent pipeline.Sent) {
	bill := provider.Bill{MaxTokens: ms.spec.Limits.Budget.maxTokens()}
	if m, err := ms.find(sent.Model); err == nil { // else the spec does not have it any more
		bill = m.bill
	}
	ms.budget.Restore(sent, bill)
}

func (ms *models) options(name string, spec *modelSpec) (provider.Options, error) {
	o := provider.Options{
		Name: name, Replies: spec.Replies, BaseDir: filepath.Dir(ms.spec.file), Config: spec.settings(), Baked: spec.Baked,
		Model: spec.Model, BaseURL: spec.BaseURL.s, Proxy: spec.Proxy, CAFile: spec.CAFile, Now: ms.env.now, Warn: ms.env.warnOnce(),
	}
	if len(spec.Headers) > 0 {
		o.Headers = map[string]string{}
		for _, h := range spec.Headers {
			o.Headers[h.Key] = h.Value
		}
	}
	var err error
	if !ms.offline {
		o.Key, o.KeyFrom, err = spec.key(ms.spec.file)
	}
	return o, err
}

// limiters are those of the models that were asked, by name.
func (ms *models) limiters() map[string]*provider.Limiter {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	all := map[string]*provider.Limiter{}
	for name, m := range ms.open {
		if m.limiter != nil {
			all[name] = m.limiter
		}
	}
	return all
}

// bounded are the services whose max_tokens comes from the budget, sorted.
func (ms *models) bounded() []string {
	if !ms.spec.Limits.Budget.boundsTokens() {
		return nil
	}
	var list []string
	for _, name := range sortedKeys(ms.limiters()) {
		if spec, err := ms.spec.model(name); err == nil && spec.settings()["max_tokens"].IsZero() {
			list = append(list, name)
		}
	}
	return list
}

// givenUp are the models whose services were given up, sorted.
func (ms *models) givenUp() []string {
	var list []string
	limiters := ms.limiters()
	for _, name := range sortedKeys(limiters) {
		if limiters[name].Status().GaveUp {
			list = append(list, name)
		}
	}
	return list
}

// limitsSpec bounds a run. The limits of a service are those of each model by
// itself.
type limitsSpec struct {
	Concurrency workers       `conf:"concurrency"` // requests in flight, a model; 0 adapts
	Timeout     time.Duration `conf:"timeout"`     // of a call
	Retries     *int          `conf:"retries"`     // further requests after a reply that could not be read
	MaxErrors   threshold     `conf:"max_errors"`

	MaxSteps      positive      `conf:"max_steps"`      // requests of a call with tools; 0: 8
	PluginTimeout time.Duration `conf:"plugin_timeout"` // of loading a plugin, and of each of its handlers; 0: 30 s

	AttemptTimeout time.Duration `conf:"attempt_timeout"` // of a request
	MaxRetries     *int          `conf:"max_retries"`     // further tries of a request that a service failed
	RetryFor       time.Duration `conf:"retry_for"`       // tries and back-off of a request in all
	Outage         time.Duration `conf:"outage"`          // how long a service that is down is waited for

	Budget       budgetSpec `conf:"budget"`
	ConfirmAbove amount     `conf:"confirm_above"` // money: a run estimated to cost more is asked about on a terminal
}

// of are the limits of one model.
func (l *limitsSpec) of(m *modelSpec) provider.Limits {
	limits := provider.DefaultLimits()
	limits.Concurrency = int(l.Concurrency)
	if m.Concurrency > 0 {
		limits.Concurrency = int(m.Concurrency)
	}
	limits.RequestsPerMinute, limits.TokensPerMinute = int(m.RequestsPerMinute), int(m.TokensPerMinute)
	if l.MaxRetries != nil {
		limits.MaxRetries = *l.MaxRetries
	}
	for _, d := range []struct {
		given time.Duration
		to    *time.Duration
	}{{l.AttemptTimeout, &limits.Timeout}, {l.RetryFor, &limits.RetryFor}, {l.Outage, &limits.OutageFor}} {
		if d.given != 0 {
			*d.to = d.given
		}
	}
	return limits
}

// budgetSpec is what a run may use in all.
type budgetSpec struct {
	USD       amount        `conf:"usd"` // in the currency of the prices
	Tokens    count         `conf:"tokens"`
	Calls     count         `conf:"calls"`
	Time      time.Duration `conf:"time"`
	MaxTokens positive      `conf:"max_tokens"` // of a model that states none, where money or tokens are bounded
}

// defaultMaxTokens bounds the replies of a model that states no bound.
const defaultMaxTokens = 4096

func (b *budgetSpec) maxTokens() int64 {
	if b.MaxTokens > 0 {
		return int64(b.MaxTokens)
	}
	return defaultMaxTokens
}

func (b *budgetSpec) boundsTokens() bool { return b.USD > 0 || b.Tokens > 0 }

func (b *budgetSpec) allowance() provider.Allowance {
	return provider.Allowance{Money: float64(b.USD), Tokens: int64(b.Tokens), Calls: int64(b.Calls), Time: b.Time}
}

// amount is a sum of money above 0; 0 when it is not given.
type amount float64

func (a *amount) DecodeConf(n conf.Node) error {
	var f float64
	if err := conf.Decode(n, &f); err != nil {
		return err
	}
	if !(f > 0 && f <= 1e9) {
		return n.Errorf("%v is no amount above 0", f)
	}
	*a = amount(f)
	return nil
}

// count is a whole number from 1; 0 when it is not given.
type count int64

func (c *count) DecodeConf(n conf.Node) error {
	var i int64
	if err := conf.Decode(n, &i); err != nil {
		return err
	}
	if i < 1 {
		return n.Errorf("%d is less than 1", i)
	}
	*c = count(i)
	return nil
}

// unpriced are the services that were opened and have no price, sorted.
func (ms *models) unpriced() []string {
	var list []string
	for _, name := range sortedKeys(ms.limiters()) {
		if ms.open[name].lm.Price == nil {
			list = append(list, name)
		}
	}
	return list
}

// mostWaiting bounds the calls that are begun and wait for a service, and
// mostBatched those that wait for a batch: the more, the fewer batches, each of
// which may take a day, and the more memory: some 40 kB each.
const (
	mostWaiting = 1024
	mostBatched = 10_000
)

// inFlight is how many requests may be on their way at once: enough for every service
// to have as many as it may, or for large batches. What each has is the limiters' to
// bound.
func (ms *models) inFlight() int {
	n := 0
	for name := range ms.limiters() {
		spec, err := ms.spec.model(name)
		if err != nil {
			continue
		}
		if spec.Mode.s != "" {
			return mostBatched
		}
		limits := ms.spec.Limits.of(&spec)
		if n += limits.Concurrency; limits.Concurrency == 0 {
			n += limits.Most
		}
	}
	if n == 0 {
		n = int(ms.spec.Limits.Concurrency)
	}
	if n == 0 {
		n = harness.DefaultWorkers
	}
	return min(n, mostWaiting)
}
