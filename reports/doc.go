// Package reports turns a finished run into something people and machines act
// on: a page, a pull request's comment, a table, a test report, a JSON document,
// a few lines on a terminal.
//
// # Steps
//
//  1. Finish a run and have its evaluations: [harness.Run.Evaluate], or
//     [harness.OpenRun] and [harness.Run.Evaluations] for one of yesterday.
//  2. [New] makes the [Report]: all that is to be said, decided and put into
//     words once, with no format in it yet.
//  3. [Write] writes it in any of the [Formats] into the run's folder; [Text]
//     writes the short form for a terminal.
//
// No format computes anything. What a page says, report.json says too, and both
// have it from the harness.
//
// # Words
//
// A verdict is one sentence on one candidate, one metric and the baseline. It
// rests on the decision of [stats.Paired], never on two ranges that overlap. An
// undecided comparison says so, and what this run could have seen: it is never
// called "no change".
//
// Points are percentage points. Only scores that are 0 or 1 are written as
// percent and points; all others keep their own unit. Numbers are rounded so
// that half the width of their range has two digits: a third one would be noise.
//
// A row changed when its score did. Pages show such rows with both answers, the
// largest losses first, and no more of them than a person would read.
//
// # Promises
//
// The same answers give the same report.json, byte for byte, apart from the
// member "measured", which holds all that depends on clock, host or schedule.
// Names, answers, inputs and messages are data from anywhere: every format
// quotes them, none interprets them, and the page loads nothing and runs no
// script but its own.
package reports
