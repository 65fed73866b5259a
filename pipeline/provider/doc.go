// Package provider holds the models that answer requests.
//
// Three of them need no network. [Recorded] gives back replies that were kept in
// a file and never makes one up. [Lexical] is a word-overlap baseline, not a
// language model: it is there so that demonstrations and sweeps run anywhere.
// [Script] is for tests and is made in Go alone.
//
// The others ask a service over HTTP: openai any with OpenAI's chat completions,
// anthropic and gemini those of their names. They ask once and say what came. What a
// service bears, when to try again and when it is down are a [Limiter]'s, around
// them; what they may use together is a [Budget]'s. With [Limiter.Batch] an openai
// model is asked through the service's batch API.
//
// To use one from a configuration, call [Open] with the provider's name; it
// returns a [pipeline.LM], which says as well how the model is to be asked. To
// keep replies in a file, call [WriteReplies].
//
// The words it defines:
//
//   - A replies file holds one recorded reply a row, in Parquet or as JSON lines.
//   - A request's probe hash is its hash with the model's name replaced by
//     "probe". Replies are kept under it, so that a model may be called anything.
//   - A replicate is one of several replies to one request, from 0. The answer
//     to repeat n of a row is replicate n.
//   - A request was never recorded when the file has no reply under its probe hash
//     and replicate. That is a failed call, not a wrong answer.
//
// Whoever implements [pipeline.Model] runs the suite in the folder providertest.
package provider
