// Package replay keeps calls and ratings at rest and makes rows of those that
// people rated, so that they can be asked again.
//
// The words it defines:
//
//   - A [Record] is a call at rest, a [Rating] what somebody said of one. Both are
//     lines of a call log, and rows of a store's Parquet files; nothing is lost
//     from one to the other. [FromCall] makes the record of a finished call.
//   - A [Source] is where they are read from: [Open] opens a store, a call log, or
//     files of either. A line that cannot be used is a [Skip].
//   - [Import] makes a store of call logs, or adds to one. [ReadStats], [Validate]
//     and [Schema] look at what is there.
//   - [Rated] are the rows of a program's rated calls: what [Rows] makes of a
//     Source for a [Query]. Each row has the call's inputs and what it was shown
//     of its conversation, the right answers that people gave, and what they said
//     of the recorded one. A rated call that cannot become a row is [Left], with
//     the reason.
//
// Only the ratings and the calls that they need are held in memory, never a log.
// docs/formats.md describes the files, and docs/rated-rows.md the rows.
package replay
