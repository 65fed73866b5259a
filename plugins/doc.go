// Package plugins has ready-made plugins, and loads plugins from files.
//
// The ready-made ones are written with the public hooks of package pipeline and
// nothing private: whoever wants another behavior copies one, changes it and
// uses the copy in its place.
//
//   - [Approval] asks a person before a tool runs.
//   - [Guard] blocks tools by name, by path, or by what they are given.
//   - [Redact] hides addresses, numbers and keys from models and tools.
//   - [Compaction] folds the old turns of a long conversation into a summary.
//   - [Budget] leaves bulky fields out of earlier turns.
//   - [Modes] adds the section of the mode a conversation is in to every call.
//   - [Delegate] makes a tool of another program. It is no plugin; it is here
//     because it keeps its place in a conversation the way plugins do.
//
// A constructor checks its options and refuses what could only be a mistake; the
// plugin it returns is immutable and safe for concurrent use, and goes where
// plugins go: into a [pipeline.Layer].
//
// Where a tool is named, the name may be the tool's own ("send_email"), the path
// of its use (call names from the outermost, then the tool, joined by "/":
// "assistant/research/search"), or an ending of that path in whole segments
// ("research/search"). So "email" does not name "send_email".
package plugins
