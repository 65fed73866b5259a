// Package harness measures candidates on rows, and keeps what was measured.
//
// # Steps
//
//  1. Write down the question as a [Plan]: rows, candidates, metrics.
//  2. [Check] it. What cannot work is refused here, before anything is asked.
//  3. Evaluate the checked plan by itself ([Checked.Evaluate]), or make a
//     [Run] of one or several, which has a folder ([StartRun], [Run.Evaluate]).
//  4. Read the [Evaluation]: an [Outcome] for each candidate, a [Comparison] of
//     each with the baseline, and the [Ledger], which accounts for every row.
//     [OpenRun] brings back the evaluations of a run that is done, and [Compare]
//     compares outcomes of any two runs on the rows they have in common.
//
// # Words
//
// A candidate is a program as it is asked in one environment. The recorded lane
// is a candidate of which nothing is asked: its answers are the recorded outputs.
//
// A task is one answer to get: a row, a candidate, and which of the repeats. An
// [Executor] does tasks; [Local] does them in this process. A [Result] is the
// answer of one task, scored. The row is the unit: answers to a row are averaged
// first, and however many there are they count as one observation.
//
// A row ends in one state for each candidate. It is scored; or it failed, under
// a class, when an answer failed or a metric gave it no number, and then counts
// 0; or it is unfinished, when the run ended before its last answer came, and
// then counts nowhere. Failures of rows are data. Only what keeps a run from
// going on is an error.
//
// # What the pipeline is told
//
// A candidate is given a row's id, its program's inputs and the row's context,
// never the row: right answers are out of reach by type.
//
// # Same answers, same bytes
//
// The numbers of an evaluation do not depend on how many tasks are at work at
// once, on when they end, or on whether they are computed from a run that goes on
// or from a stored one. What does depend on clock, host or schedule is set apart
// in [Measured].
package harness
